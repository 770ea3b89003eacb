"""The table of what quality checks have verified, for `./foldlake status`."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table


def verified_table(stores: Sequence[dict[str, Any]], duration: Callable[[int], str]) -> Table:
    """Return a line for each store: `include.quality.verified_status.VerifiedStatus` as dictionaries."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), title="verified", title_justify="left")
    for store in stores:
        behind = "unknown" if store["events_behind"] is None else f"{store['events_behind']:,}"
        table.add_row(
            f"{store['read_model']} v{store['version']}, {store['store']}",
            f"{behind} events not verified, the oldest at most {duration(round(store['age_s']))} old; all keys verified "
            f"{duration(round(store['full_age_s']))} ago",
        )
    return table
