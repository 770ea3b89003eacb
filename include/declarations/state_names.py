"""The names that fields of a state cannot have: those of the other columns of its table, and one name twice.

Spark, Delta and DuckDB compare names without regard to case.
"""

from collections.abc import Iterable

from include.errors import ReadModelError
from include.position import POSITION_COLUMNS

KEY_COLUMN = "key"


def require_own_names(read_model: str, names: Iterable[str]) -> None:
    """Raise ReadModelError if a field of a read model's state has the name of another field, of the key or of the position."""
    own = (KEY_COLUMN, *POSITION_COLUMNS)
    taken = {name: name for name in own}
    for name in names:
        before = taken.get(name.casefold())
        if before in own:
            raise ReadModelError(
                f"Read model {read_model} declares the state field {name}, but every state record has {before}, and case makes no "
                "difference: rename the field."
            )
        if before is not None:
            raise ReadModelError(
                f"Read model {read_model} declares the state fields {before} and {name}, but case makes no difference: rename one of them."
            )
        taken[name.casefold()] = name
