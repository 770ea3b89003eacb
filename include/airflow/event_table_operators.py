"""The Airflow operator that checks an event table."""

from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.names import lake_asset
from include.airflow.quality_operators import ASSET_TRIGGERED, MANUAL, kind_of
from include.declarations.event_table import EventTable
from include.settings import Settings
from include.webhook import post_alert


class CheckEventTable(BaseOperator):
    """Checks that an event table has each event once: daily, after each append to it, and as the form specifies.

    A failed check fails the task without retry, and is posted to the webhook.
    """

    def __init__(self, *, table: EventTable, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self._table = table

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Check the table, if this run is for it."""
        # Not when DAGs are parsed.
        from include.lake.event_table_check import EventTableMissingError, check_event_table  # noqa: PLC0415

        name, run_type = self._table.name, kind_of(context["dag_run"].run_type)
        changed = [asset.name for asset in context.get("triggering_asset_events") or {}]
        is_asked = (
            context["params"]["read_model"] == name
            if run_type == MANUAL
            else run_type != ASSET_TRIGGERED or lake_asset(name) in changed
        )
        if not is_asked:
            raise AirflowSkipException(f"This run is not for {name}.")
        settings = Settings()
        try:
            found = check_event_table(settings.lake_root, self._table)
        except EventTableMissingError as error:
            raise AirflowSkipException(str(error)) from error
        self.log.info("lake/%s: %s", name, found)
        if not found.is_exact:
            text = f"The check of event table {name} failed: {found}."
            post_alert(settings.quality.alert_webhook_url, {"text": text, "event_table": name})
            raise AirflowFailException(f"{text} docs/lake.md says how to build it again.")
