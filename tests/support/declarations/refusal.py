"""Why a declaration is refused, for tests of declarations."""

from pathlib import Path

from include.declarations.catalog import load_catalog
from include.declarations.loading.modules import load_modules
from include.errors import FoldlakeError


def refusal(*folders: Path) -> str:
    """Return the error of the declarations in these folders: of all of them, or of the one module that is left out."""
    try:
        load_catalog(folders)
    except FoldlakeError as error:
        return str(error)
    (failure,) = load_modules(folders).failures
    return failure.error
