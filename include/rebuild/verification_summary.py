"""The results of a candidate's verification, in Markdown, for the person who approves its promotion."""

import logging
from pathlib import Path
from urllib.parse import urlsplit

from include.lake.tables import quality_path
from include.quality.report import report_url

LOG = logging.getLogger(__name__)


def verification_summary(lake_root: str, reports_base_url: str, run_id: str) -> str:
    """Return a table of the check's expectations, or the reason why it is missing. Never raises: a promotion can be approved without it."""
    try:
        return _summary(lake_root, reports_base_url, run_id)
    except Exception as error:
        LOG.exception("the results of check %s cannot be read", run_id)
        return f"The results of the quality check {run_id} cannot be read: {error}"


def _summary(lake_root: str, reports_base_url: str, run_id: str) -> str:
    from deltalake import DeltaTable  # noqa: PLC0415 - takes a second to import, and is rarely needed

    path = quality_path(lake_root)
    if not urlsplit(path).scheme and not Path(path).exists():
        return "There are no results of quality checks."
    columns = ["store", "expectation", "passed", "checked", "failed"]
    rows = DeltaTable(path).to_pyarrow_table(filters=[("run_id", "=", run_id)], columns=columns).to_pylist()
    if not rows:
        return f"There are no results of the quality check {run_id}."
    lines = ["| store | expectation | checked | failed |", "|---|---|---|---|"]
    lines += [
        f"| {row['store']} | {row['expectation']} | {row['checked']:,} | {'none' if row['passed'] else format(row['failed'], ',')} |"
        for row in rows
    ]
    return "\n".join([*lines, "", f"[Report]({report_url(reports_base_url, run_id)})"])
