"""`./foldlake new`: a new read model, route, emission or declaration of another kind from a template."""

from pathlib import Path
from typing import Annotated

import typer

READ_MODEL, ROUTE, EMISSION = "read-model", "route", "emission"


def run(
    kind: Annotated[
        str, typer.Argument(help="What to declare: read-model, route, emission, or a kind of your own.")
    ],
    name: Annotated[str, typer.Argument(help="Its name: lower-case letters, digits and dashes.")],
    read_model: Annotated[str, typer.Option(help="Of an emission: the read model.")] = "balance",
    source_topic: Annotated[
        str, typer.Option("--from", help="Of a route or another kind: the topic that it reads.")
    ] = "balance",
    event_type: Annotated[
        str, typer.Option(help="Of a route or another kind: the event type that it reads.")
    ] = "FundsAdded",
    key: Annotated[
        str, typer.Option(help="Of a route: the field that is the new key. Default: the key of the events.")
    ] = "",
    folder: Annotated[
        Path | None,
        typer.Option(help="Where to put it. Default: FOLDLAKE_READ_MODELS_DIR, or else include/read_models."),
    ] = None,
) -> None:
    """Write a working declaration to start from: a package with its schema, a test that runs it, and a page that describes it.

    A read model gets an event type, a fold, a merge, a lookup and a command of its own. A kind that a module of declarations defines
    brings its own template. Nothing that exists is overwritten.

    Examples:
      ./foldlake new read-model parcels

      ./foldlake new route large-deposits --from balance --event-type FundsAdded --key customerId

      ./foldlake new emission balance-changes --read-model balance
    """
    from cli.scaffold.files import Scaffold
    from include.declarations.event_types.event_schemas import READ_MODELS
    from include.declarations.load import load_catalog
    from include.errors import FoldlakeError
    from include.settings import Settings

    settings = Settings()
    known = settings.declaration_folders
    wanted = folder.resolve() if folder else settings.read_models_dir or READ_MODELS
    catalog = load_catalog(known)
    scaffold = Scaffold(wanted, catalog, known)
    own = {word: one for word, one in catalog.kinds.items() if one.template and one.test_template}
    if kind == READ_MODEL:
        declaration = scaffold.read_model(name)
    elif kind == ROUTE:
        declaration = scaffold.route(name, source_topic, event_type, key)
    elif kind == EMISSION:
        declaration = scaffold.emission(name, read_model)
    elif kind in own:
        declaration = scaffold.of_kind(own[kind], name, source_topic, event_type)
    else:
        raise FoldlakeError(
            f"There is no kind {kind!r}. Known kinds: {', '.join((READ_MODEL, ROUTE, EMISSION, *sorted(own)))}."
        )
    declaration.write()
    for path in declaration.texts:
        print(path)
    if wanted not in {READ_MODELS, *known}:
        print(f"\nFoldlake does not read {wanted} yet: set FOLDLAKE_READ_MODELS_DIR={wanted}")
    print(f"\nTest it: ./foldlake test {declaration.test}\nRun it:  ./foldlake up")
