"""The DAG that keeps the stream driver running."""

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset

from include.airflow.names import SPARK_STREAM_CONNECTION, STREAM_DAG, changelog_asset, dag_arguments
from include.declarations.read_model import load_read_models
from include.settings import CHECKOUT, Settings
from include.spark.stream_config import stream_config

DOCS = """
### Keeps the stream driver running

One long-lived Spark application folds the events of every read model into its changelog. This DAG launches it and relaunches
it whenever it ends: with `@continuous`, a new run starts as soon as the last one has ended.

* **Stop**: pause this DAG, then mark its run as failed. `./foldlake down` does both in order.
* **Restart**: mark the run as failed, or clear its task.
* **Inspect**: `./foldlake status` shows how far the stream lags behind the events, `./foldlake logs stream` the driver's log. The
  task's log has both the driver's and Spark's messages.

A failed run means that the driver ended six times; its log shows why. There are never two drivers: a driver holds a lock for as
long as it can write, and ends when its launcher ends. See `docs/airflow.md`.
"""

with DAG(
    dag_id=STREAM_DAG,
    schedule="@continuous",
    description="Launches and supervises the stream driver: events in, changelogs out",
    doc_md=DOCS,
    is_paused_upon_creation=False,
    **dag_arguments("stream", "spark"),
):
    SparkSubmitOperator(
        task_id="driver",
        retries=5,
        conn_id=SPARK_STREAM_CONNECTION,
        spark_binary=str(CHECKOUT / "stack" / "bin" / "spark-submit-supervised"),
        application=str(CHECKOUT / "spark_jobs" / "stream.py"),
        name="foldlake-stream",
        conf=stream_config(Settings()),
        # In client mode the driver ends with this task: there is nothing to reconnect to.
        durable=False,
        # A task that never ends emits no events; the outlets show in Airflow where the changelogs come from.
        outlets=[Asset(changelog_asset(model)) for model in load_read_models(Settings().read_models_dir)],
    )
