"""The DAG that keeps the stream driver running."""

from airflow.sdk import DAG, Asset

from include.airflow.names import SPARK_STREAM_CONNECTION, STREAM_DAG, changelog_asset, dag_arguments
from include.airflow.stream_operator import StreamDriver
from include.declarations.read_model import load_read_models
from include.settings import CHECKOUT, Settings

DOCS = """
### Keeps the stream driver running

One long-lived Spark application folds the events of every read model into its changelog. This DAG launches it and relaunches
it whenever it ends: with `@continuous`, a new run starts as soon as the last one has ended. While the driver fails soon after each
launch, the task waits before the next one, longer each time.

* **Stop**: pause this DAG, then mark its run as failed. `./foldlake down` does both in order.
* **Restart**: mark the run as failed, or clear its task.
* **Inspect**: `./foldlake status` shows how far the stream lags behind the events, `./foldlake logs stream` the driver's log. The
  task's log has both the driver's and Spark's messages.

A failed run means that the driver ended six times; `./foldlake status` and the task's log show why. There are never two drivers: a driver holds a lock for as
long as it can write, and ends when its launcher ends. See `docs/airflow.md`.
"""


def changelogs() -> list[Asset]:
    """Return the asset of each read model's changelog; none if a module is broken, which the launched driver reports."""
    try:
        return [Asset(changelog_asset(model)) for model in load_read_models(Settings().read_models_dir)]
    except Exception:  # noqa: BLE001 - a module can raise anything
        return []


with DAG(
    dag_id=STREAM_DAG,
    schedule="@continuous",
    description="Launches and supervises the stream driver: events in, changelogs out",
    doc_md=DOCS,
    is_paused_upon_creation=False,
    **dag_arguments("stream", "spark"),
):
    StreamDriver(
        task_id="driver",
        retries=5,
        conn_id=SPARK_STREAM_CONNECTION,
        spark_binary=str(CHECKOUT / "stack" / "bin" / "spark-submit-supervised"),
        application=str(CHECKOUT / "spark_jobs" / "stream.py"),
        name="foldlake-stream",
        # In client mode the driver ends with this task: there is nothing to reconnect to.
        durable=False,
        # A task that never ends emits no events; the outlets show in Airflow where the changelogs come from.
        outlets=changelogs(),
    )
