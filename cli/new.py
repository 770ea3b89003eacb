"""`./foldlake new`: a new read model, route or emission from a template."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """A kind of declaration."""

    READ_MODEL = "read-model"
    ROUTE = "route"
    EMISSION = "emission"


def run(
    kind: Annotated[Kind, typer.Argument(help="What to declare.")],
    name: Annotated[str, typer.Argument(help="Its name: lower-case letters, digits and dashes.")],
    read_model: Annotated[str, typer.Option(help="Of an emission: the read model.")] = "balance",
    source_topic: Annotated[
        str, typer.Option("--from", help="Of a route: the topic that it reads.")
    ] = "balance",
    event_type: Annotated[str, typer.Option(help="Of a route: the event type that it reads.")] = "FundsAdded",
    key: Annotated[
        str, typer.Option(help="Of a route: the field that is the new key. Default: the key of the events.")
    ] = "",
    folder: Annotated[
        Path | None,
        typer.Option(help="Where to put it. Default: FOLDLAKE_READ_MODELS_DIR, or else include/read_models."),
    ] = None,
) -> None:
    """Write a working declaration to start from: a package with its schema, a test that runs it, and a page that describes it.

    A read model gets an event type, a fold, a merge, a lookup and a command of its own. Nothing that exists is overwritten.

    Examples:
      ./foldlake new read-model parcels

      ./foldlake new route large-deposits --from balance --event-type FundsAdded --key customerId

      ./foldlake new emission balance-changes --read-model balance
    """
    from cli.scaffold.files import Scaffold
    from include.declarations.event_types.event_schemas import READ_MODELS
    from include.declarations.load import load_catalog
    from include.settings import Settings

    settings = Settings()
    known = settings.declaration_folders
    wanted = folder.resolve() if folder else settings.read_models_dir or READ_MODELS
    scaffold = Scaffold(wanted, load_catalog(known), known)
    match kind:
        case Kind.READ_MODEL:
            declaration = scaffold.read_model(name)
        case Kind.ROUTE:
            declaration = scaffold.route(name, source_topic, event_type, key)
        case Kind.EMISSION:
            declaration = scaffold.emission(name, read_model)
    declaration.write()
    for path in declaration.texts:
        print(path)
    if wanted not in {READ_MODELS, *known}:
        print(f"\nFoldlake does not read {wanted} yet: set FOLDLAKE_READ_MODELS_DIR={wanted}")
    print(f"\nTest it: ./foldlake test {declaration.test}\nRun it:  ./foldlake up")
