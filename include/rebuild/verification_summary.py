"""What the proof of a candidate came to, in Markdown, for the person who approves it."""

from pathlib import Path
from urllib.parse import urlsplit

from include.lake.tables import quality_path
from include.quality.report import report_url
from include.settings import Settings


def proof_summary(settings: Settings, run_id: str) -> str:
    """Return a table of the check's expectations; a line that says so where its results cannot be read."""
    from deltalake import DeltaTable  # noqa: PLC0415 - takes a second, and is rarely needed

    path = quality_path(settings)
    if not urlsplit(path).scheme and not Path(path).exists():
        return "There are no results of the quality check."
    columns = ["store", "expectation", "passed", "checked", "failed"]
    found = DeltaTable(path).to_pyarrow_table(filters=[("run_id", "=", run_id)], columns=columns).to_pylist()
    if not found:
        return f"The quality check {run_id} has left no results."
    lines = ["| store | expectation | checked | failed |", "|---|---|---|---|"]
    lines += [
        f"| {row['store']} | {row['expectation']} | {row['checked']:,} | {'none' if row['passed'] else format(row['failed'], ',')} |"
        for row in found
    ]
    return "\n".join([*lines, "", f"[Report]({report_url(settings, run_id)})"])
