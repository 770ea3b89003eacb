"""The note of a quality run: the verdict on each read model that it has checked, with a link to the report."""

import logging
from typing import Any

from include.airflow.client import MAX_NOTE_CHARACTERS, AirflowUnavailableError
from include.airflow.login import airflow_api
from include.quality.report import Outcome, Verdict, report_url
from include.settings import Settings

LOG = logging.getLogger(__name__)
WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "**FAILED**", Outcome.UNCHECKABLE: "cannot be checked"}


def note_verdict(settings: Settings, run: Any, read_model: str, check: str, verdict: Verdict) -> None:  # noqa: ANN401 - Airflow's
    """Add the verdict of a check to the note of its run, in place of an earlier one on the same read model.

    The checks of a run follow one another in their pool, so that none overwrites what another has just noted.
    """
    line = verdict_line(read_model, verdict, report_url(settings.reports_base_url, check))
    try:
        api = airflow_api(settings.home, settings.airflow)
        note = with_line(api.note(run.dag_id, run.run_id), read_model, line)
        api.set_note(run.dag_id, run.run_id, note)
    except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
        # The run does not depend on its note.
        LOG.warning("cannot set the run's note: %s", error)


def verdict_line(read_model: str, verdict: Verdict, url: str) -> str:
    """Return a verdict as a line of Markdown."""
    link = "" if verdict.outcome is Outcome.UNCHECKABLE else f": [Report]({url})"
    return f"{_prefix(read_model)}{WORDS[verdict.outcome]}{link}"


def with_line(note: str, read_model: str, line: str) -> str:
    """Return a note with the line on a read model; lines that do not fit are left out, oldest first."""
    lines = [one for one in note.split("\n\n") if one and not one.startswith(_prefix(read_model))] + [line]
    while len("\n\n".join(lines)) > MAX_NOTE_CHARACTERS and len(lines) > 1:
        lines.pop(0)
    return "\n\n".join(lines)


def _prefix(read_model: str) -> str:
    return f"{read_model} "
