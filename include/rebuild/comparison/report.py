"""The report of a comparison: a self-contained HTML page, a picture for the approval, and the same as JSON for programs."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from markupsafe import Markup

from include.files import write_atomically
from include.html_pages import page_templates
from include.quality.report import file_stem
from include.rebuild.comparison.comparison import Comparison
from include.rebuild.comparison.fold_source import DiffLine, LineKind, code_difference, column_difference
from include.rebuild.comparison.histograms import histogram_svg
from include.rebuild.comparison.report_text import (
    explain_command,
    explain_path,
    number,
    percent,
    signed,
    state_value,
)

TEMPLATES = Path(__file__).resolve().parent / "templates"
URL_PATH = "/reports/changes/"
CSS_CLASSES = {LineKind.ADDED: "added", LineKind.REMOVED: "removed", LineKind.KEPT: "kept"}


def comparisons_directory(home: Path) -> Path:
    """Return the directory of the reports."""
    return home / "reports" / "changes"


def comparison_path(home: Path, run_id: str) -> Path:
    """Return the path of a comparison's JSON; page and picture are beside it."""
    return comparisons_directory(home) / f"{file_stem(run_id)}.json"


def report_url(base_url: str, run_id: str) -> str:
    """Return the URL under which a query node serves the page."""
    return f"{base_url.rstrip('/')}{URL_PATH}{file_stem(run_id)}.html"


def picture_url(base_url: str, run_id: str) -> str:
    """Return the URL of the histogram of the field with which the largest changes are found."""
    return report_url(base_url, run_id).removesuffix(".html") + ".svg"


def write(home: Path, comparison: Comparison) -> None:
    """Write page and picture, and the JSON last; each atomically."""
    path = comparison_path(home, comparison.run_id)
    write_atomically(path.with_suffix(".html"), html(comparison))
    picture = path.with_suffix(".svg")
    svg = histogram(comparison, comparison.measure, is_file=True)
    if svg:
        write_atomically(picture, svg)
    else:
        picture.unlink(missing_ok=True)
    write_atomically(path, comparison.to_json())


def read(home: Path, run_id: str) -> Comparison | None:
    """Return a comparison; None if there is none."""
    try:
        return Comparison.from_json(comparison_path(home, run_id).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def histogram(comparison: Comparison, field: str, *, is_file: bool = False) -> str:
    """Return the picture of how many keys change by how much in a field; empty if none does."""
    totals = comparison.fields.get(field)
    if totals is None:
        return ""
    title = f"{comparison.read_model}: number of keys by the change of {field}"
    return histogram_svg(totals.bins, title, is_file=is_file)


def html(comparison: Comparison) -> str:
    """Return the page."""
    environment = page_templates(TEMPLATES)
    environment.filters |= {"number": number, "signed": signed, "percent": percent, "value": state_value}
    return environment.get_template("comparison.html").render(
        comparison=comparison,
        pictures={name: Markup(histogram(comparison, name)) for name in comparison.fields},  # noqa: S704 - escaped in the picture
        code=_marked(code_difference(comparison.folds)),
        columns=_marked(column_difference(comparison.folds)),
        explain_path=partial(explain_path, comparison.read_model),
        explain_command=partial(explain_command, comparison.read_model, version=comparison.after.number),
    )


def _marked(lines: Sequence[DiffLine]) -> list[tuple[str, str]]:
    """Return the CSS class of each line, and the line with its mark."""
    return [(CSS_CLASSES[line.kind], str(line)) for line in lines]
