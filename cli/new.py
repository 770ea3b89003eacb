"""`./foldlake new`: a new read model, route, emission or declaration of another kind from a template."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    kind: Annotated[
        str,
        typer.Argument(help="The declaration to write: read-model, route, emission, or a kind of your own."),
    ],
    name: Annotated[str, typer.Argument(help="Its name: lower-case letters, digits and dashes.")],
    read_model: Annotated[str, typer.Option(help="The read model of an emission.")] = "balance",
    source_topic: Annotated[
        str, typer.Option("--from", help="The topic that a route or another kind reads.")
    ] = "balance",
    event_type: Annotated[
        str, typer.Option(help="The event type that a route or another kind reads.")
    ] = "FundsAdded",
    key: Annotated[
        str, typer.Option(help="The field that is the new key of a route. Default: the key of the events.")
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
    from cli.scaffold.files import Scaffold, Wanted
    from include.declarations.event_types.event_schemas import READ_MODELS
    from include.declarations.load import load_catalog
    from include.settings import Settings

    settings = Settings()
    known = settings.declaration_folders
    into = folder.resolve() if folder else settings.read_models_dir or READ_MODELS
    scaffold = Scaffold(into, load_catalog(known), known)
    declaration = scaffold.new(Wanted(kind, name, read_model, source_topic, event_type, key))
    declaration.write()
    for path in declaration.texts:
        print(path)
    if into not in {READ_MODELS, *known}:
        print(f"\nFoldlake does not read {into} yet: set FOLDLAKE_READ_MODELS_DIR={into}")
    print(f"\nTest it: ./foldlake test {declaration.test}\nRun it:  ./foldlake up")
