"""The approval of a promotion: which thresholds are exceeded, and the text for the person who decides."""

import logging
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from include.lake.tables import quality_path
from include.quality.report import report_url
from include.rebuild.comparison import report
from include.rebuild.comparison.summary import comparison_summary
from include.rebuild.comparison.thresholds import Thresholds, exceeded
from include.rebuild.stage import Question, report_id
from include.versions.version_record import Version

LOG = logging.getLogger(__name__)


def exceeded_thresholds(versions: Mapping[str, Version], thresholds: Thresholds, home: Path) -> list[str]:
    """Return a sentence for each threshold that a version's comparison exceeds. versions: by read model."""
    found: list[str] = []
    for name, version in versions.items():
        comparison_id = report_id(name, version.number)
        comparison = report.read(home, comparison_id)
        if comparison is None:
            found.append(
                f"There is no comparison {comparison_id}, so that the thresholds of {name} cannot be evaluated."
            )
            continue
        prefix = f"{name}: " if len(versions) > 1 else ""
        found += [f"{prefix}{sentence}" for sentence in exceeded(thresholds, comparison)]
    return found


def approval_question(
    versions: Mapping[str, Version], reason: str, home: Path, lake_root: str, reports_base_url: str
) -> Question:
    """Return the question whether these versions, by read model, are promoted, with what changes and the results of their checks."""
    names = ", ".join(f"v{version.number} of {name}" for name, version in versions.items())
    together = ", together" if len(versions) > 1 else ""
    parts = []
    for name, version in versions.items():
        topic = f" from {version.source_topic}" if version.source_topic else ""
        run_id = report_id(name, version.number)
        parts += [
            f"v{version.number} of {name} was built{topic} with fold revision {version.fold_revision}, verified, and compared with the live version.",
            comparison_summary(home, reports_base_url, run_id),
            verification_summary(lake_root, reports_base_url, run_id),
        ]
    return Question(f"Promote {names}{together}? {reason}", "\n\n".join(parts))


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
