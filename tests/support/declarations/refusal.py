"""Why a declaration is refused, for tests of declarations."""

from pathlib import Path

from include.declarations.load import load_catalog
from include.errors import FoldlakeError


def refusal(*folders: Path) -> str:
    """Return the error of the declarations in these folders: of all of them, or of the one module that is left out."""
    try:
        (failure,) = load_catalog(folders).failures
    except FoldlakeError as error:
        return str(error)
    return failure.error
