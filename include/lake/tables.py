"""The paths of the Delta tables, and the columns of a read model's table."""

from include.declarations.read_model import KEY_COLUMN, POSITION_FIELDS, ReadModel, StateField


def table_path(lake_root: str, model: str) -> str:
    """Return the table that analysts read."""
    return f"{lake_root}/{model}"


def staging_path(lake_root: str, model: str, version: int) -> str:
    """Return the table of a rebuild that is not promoted yet."""
    return f"{lake_root}/_staging/{model}/v{version}"


def verified_path(lake_root: str, model: str, version: int) -> str:
    """Return the table of a version's verified records, from which incremental quality checks go on."""
    return f"{lake_root}/_verified/{model}/v{version}"


def quality_path(lake_root: str) -> str:
    """Return the table of the quality checks' results."""
    return f"{lake_root}/_quality"


def table_fields(model: ReadModel) -> tuple[StateField, ...]:
    """Return the columns of a read model's table: its key, every field of any fold revision, the position."""
    return (StateField(KEY_COLUMN, "string", model.key_doc), *model.state, *POSITION_FIELDS)
