"""`./foldlake docs`: the documentation's site."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    context: typer.Context,
    *,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve the site on this machine, and build it again after each change."),
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server.")] = 8000,
    update_reference: Annotated[
        bool,
        typer.Option(
            "--update-reference", help="Write docs/reference anew from the code, and build nothing."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="Folder to write, which is replaced. Default: site in FOLDLAKE_HOME."
        ),
    ] = None,
) -> None:
    """Build the documentation's site from the pages in docs/. A broken link, a missing anchor and an orphan page are errors.

    The pages of docs/reference are made of the code: --update-reference writes them after a change of settings, commands, the HTTP API,
    metrics, DAGs, tables or docstrings of declarations.

    The first call installs MkDocs into FOLDLAKE_TOOLS. The site loads nothing from other hosts. It can be opened from its folder,
    or copied to any web server.

    Examples:
      ./foldlake docs

      ./foldlake docs --serve

      ./foldlake docs --output public

      ./foldlake docs --update-reference
    """
    from cli.documentation.site import build
    from cli.documentation.site import serve as serve_site
    from include.settings import Settings

    if update_reference:
        from cli.documentation.reference.pages import update

        for path in update(context.find_root().command):
            print(f"written: {path}")
        return
    settings = Settings()
    if serve:
        serve_site(settings.tools, port)
        return
    folder = output or settings.home / "site"
    build(settings.tools, folder.absolute())
    print(f"The site is in {folder}: open {folder / 'index.html'}.")
