"""The comparison in Markdown, for the person who approves the promotion."""

import re
from collections.abc import Sequence
from pathlib import Path

from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import Comparison, FieldChange
from include.rebuild.comparison.fold_source import code_difference
from include.rebuild.comparison.report_text import explain_path, number, percent, signed, state_value

LARGEST = 5
# A longer fold is in the report.
MOST_CODE_LINES = 40
MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~])")


def comparison_summary(home: Path, reports_base_url: str, run_id: str) -> str:
    """Return what a rebuild changes, in Markdown, or that this is not known."""
    found = report.read(home, run_id)
    if found is None:
        return f"**The changes are unknown**: there is no comparison {run_id}."
    return markdown(found, reports_base_url)


def with_exceeded(body: str, exceeded: Sequence[str]) -> str:
    """Return the text of an approval, preceded by the thresholds that are exceeded."""
    if not exceeded:
        return body
    lines = "\n".join(f"- {_escaped(sentence)}" for sentence in exceeded)
    return f"**Thresholds of the form are exceeded**\n\n{lines}\n\n{body}"


def markdown(comparison: Comparison, base_url: str) -> str:
    """Return the comparison in Markdown; the links lead to a query node with this URL."""
    live = "nothing" if comparison.before is None else f"the live v{comparison.before.number}"
    counts = (
        f"**{comparison.counts} ({percent(comparison.changed_percent)})** between "
        f"v{comparison.after.number} and {live}: {comparison.changed:,} changed, {comparison.added:,} new, {comparison.gone:,} gone."
    )
    parts = [
        *(f"**{_escaped(note)}**" for note in comparison.notes),
        counts,
        _totals(comparison),
        _picture(comparison, base_url),
        _largest(comparison, base_url),
        _fold(comparison),
        f"[All changes, with samples and histograms]({report.report_url(base_url, comparison.run_id)})",
    ]
    return "\n\n".join(part for part in parts if part)


def _totals(comparison: Comparison) -> str:
    if not comparison.fields:
        return ""
    old = "before" if comparison.before is None else f"v{comparison.before.number}"
    lines = [
        f"| sum of | {old} | v{comparison.after.number} | change | without signs | keys below zero |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, totals in comparison.fields.items():
        net = signed(totals.difference)
        if totals.difference and totals.difference_percent is not None:
            net += f" ({percent(totals.difference_percent, sign=True)})"
        before, after = totals.below_zero
        lines.append(
            f"| {_escaped(name)} | {number(totals.before)} | {number(totals.after)} | {net} | {number(totals.moved)} | {before:,} → {after:,} |"
        )
    return "\n".join(lines)


def _picture(comparison: Comparison, base_url: str) -> str:
    totals = comparison.fields.get(comparison.measure)
    if totals is None or not totals.bins:
        return ""
    title = f"number of keys by the change of {comparison.measure}"
    return f"![{_escaped(title)}]({report.picture_url(base_url, comparison.run_id)})"


def _largest(comparison: Comparison, base_url: str) -> str:
    if not comparison.largest:
        return ""
    names = list(comparison.largest[0].fields)
    lines = [
        f"Largest changes of {_escaped(comparison.measure)}:",
        "",
        f"| key | events | {' | '.join(map(_escaped, names))} |",
        "|---|---:|" + "---:|" * len(names),
    ]
    for change in comparison.largest[:LARGEST]:
        url = base_url.rstrip("/") + explain_path(comparison.read_model, change.key)
        cells = [_arrow(change.fields[name], is_number=name in comparison.fields) for name in names]
        lines.append(
            f"| [{_escaped(change.key)}]({url}) | {_arrow(change.events, is_number=True)} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _fold(comparison: Comparison) -> str:
    lines = code_difference(comparison.folds)
    if comparison.before is None or not lines:
        return ""
    old, new = comparison.before.fold_revision, comparison.after.fold_revision
    if old == new:
        return f"Both versions have fold revision {new}."
    shown = "\n".join(map(str, lines[:MOST_CODE_LINES]))
    more = "" if len(lines) <= MOST_CODE_LINES else "\n\nThe rest of the fold is in the report."
    return f"The fold, from revision {old} to {new}:\n\n```diff\n{shown}\n```{more}"


def _arrow(change: FieldChange, *, is_number: bool) -> str:
    before, after = (_escaped(state_value(side, is_number)) for side in (change.before, change.after))
    return before if before == after else f"{before} → {after}"


def _escaped(text: str) -> str:
    """Return text in one line that Markdown shows as it is."""
    return MARKUP.sub(r"\\\1", " ".join(text.split()))
