"""`./foldlake openapi`: the contract of the HTTP API, as every node returns it at `/openapi.json`."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    output: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File to write; without it, the document is printed.")
    ] = None,
) -> None:
    """Print the contract of the HTTP API as an OpenAPI 3.1 document in JSON. No node needs to run.

    It has the lookups and commands of all enabled read models. Programs that generate clients read it.

    Examples:
      ./foldlake openapi

      ./foldlake openapi --output openapi.json
    """
    from include.declarations.load import load_catalog
    from include.files import write_atomically
    from include.settings import Settings
    from query_api.http.contract.document import document_text, openapi_document

    settings = Settings()
    catalog = load_catalog(settings.declaration_folders)
    for failure in catalog.failures:
        typer.echo(f"{failure}.", err=True)
    text = document_text(openapi_document(catalog, is_secured=settings.auth.is_on))
    if output is None:
        print(text, end="")
    else:
        write_atomically(output, text)
