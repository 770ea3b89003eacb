"""Which tables a run of the DAG `compaction` brings up to date: found out once, before any of its tasks takes the pool's slot."""

import logging
from collections.abc import Sequence

from include.airflow.names import ALL_TABLES
from include.declarations.catalog import Catalog
from include.errors import KafkaUnavailableError
from include.lake.event_table_status import has_records_to_append
from include.lake.pending_work import has_pending_work
from include.quality.confirmation import confirm_if_nothing_is_new
from include.settings import Settings

LOG = logging.getLogger(__name__)
SCHEDULED_RUN = "scheduled__"


def chosen_tables(settings: Settings, catalog: Catalog, requested: str, *, is_scheduled: bool) -> list[str]:
    """Return the names of the read models and event tables whose tasks are to run.

    A scheduled run leaves out the tables that are complete: a session of Spark would take seconds of processor time to find that out.

    requested: the name of a table, or ALL_TABLES.

    Raises KafkaUnavailableError.
    """
    names = [name for name in (*catalog.models, *catalog.event_tables) if requested in (ALL_TABLES, name)]
    chosen = [name for name in names if not is_scheduled or _may_have_work(settings, catalog, name)]
    for name in names:
        if name not in chosen:
            LOG.info("lake/%s contains every event, and VACUUM is not due: skipped", name)
    return chosen


def earlier_scheduled_run(active: Sequence[str], run_id: str) -> str | None:
    """Return the id of a scheduled run that began before this one and has not ended; None if there is none.

    active: the ids of the runs that have not ended. A scheduled run's id begins with SCHEDULED_RUN, and its time follows.
    """
    return next(
        (other for other in sorted(active) if other.startswith(SCHEDULED_RUN) and other < run_id), None
    )


def task_of(catalog: Catalog, name: str) -> str:
    """Return the id of the task that brings a table up to date."""
    return f"compact_{name}" if name in catalog.models else f"append_{name}"


def _may_have_work(settings: Settings, catalog: Catalog, name: str) -> bool:
    try:
        return _has_work(settings, catalog, name)
    except KafkaUnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a damaged table raises
        # One damaged table must not keep the others from being brought up to date: its own task fails, and says what is wrong.
        LOG.warning("cannot find out whether lake/%s is complete: %s", name, error)
        return True


def _has_work(settings: Settings, catalog: Catalog, name: str) -> bool:
    if name not in catalog.models:
        return has_records_to_append(settings, catalog.event_tables[name])
    model = catalog.models[name]
    if has_pending_work(settings, model):
        return True
    # No check follows a run that is skipped: what was verified is still up to date.
    confirm_if_nothing_is_new(settings, model)
    return False
