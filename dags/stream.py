"""The DAG that keeps the stream driver running."""

from airflow.sdk import DAG, Asset

from include.airflow.driver_trigger import StreamOperator
from include.airflow.names import STREAM_DAG, changelog_asset, dag_arguments
from include.declarations.load import load_catalog
from include.settings import Settings

DOCS = """
### Keeps the stream driver running

One long-lived Spark application folds the events of every read model into its changelog. Its supervisor, a process beside Airflow, launches
it when this DAG wants it, and brings it back when it ends unexpectedly. The task follows the driver without a slot; with `@continuous`, a new run
starts as soon as the last one has ended. The driver goes on folding while Airflow is away, and the task finds it again.

* **Stop**: pause this DAG, then mark its run as failed. `./foldlake down` does both in order.
* **Restart**: mark the run as failed, or clear its task.
* **Inspect**: `./foldlake status` shows how far the stream lags behind the events, `./foldlake logs stream` the driver's log, and
  `./foldlake logs stream-supervisor` Spark's messages too.

A failed task means that the driver failed again and again; `./foldlake status` and the task's log show why. The next try waits before it launches
the driver, longer each time. There are never two drivers: a driver holds a lock for as long as it can write, and ends when its supervisor
ends. See `docs/airflow.md`.
"""


def changelogs() -> list[Asset]:
    """Return the asset of each read model's changelog; none if a module is broken, which the launched driver reports."""
    try:
        return [
            Asset(changelog_asset(model)) for model in load_catalog(Settings().declaration_folders).models
        ]
    except Exception:  # noqa: BLE001 - a module can raise anything
        return []


with DAG(
    dag_id=STREAM_DAG,
    schedule="@continuous",
    description="Has the stream driver launched, and follows it: events in, changelogs out",
    doc_md=DOCS,
    is_paused_upon_creation=False,
    **dag_arguments("stream", "spark"),
):
    StreamOperator(
        task_id="driver",
        retries=5,
        # A task that never ends emits no events; the outlets show in Airflow where the changelogs come from.
        outlets=changelogs(),
    )
