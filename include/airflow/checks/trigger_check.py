"""The task after a compaction that starts a check of the read model, or is skipped with the reason why none is due."""

import time
from typing import Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from include.airflow.names import check_due_asset
from include.airflow.quality_operators import check_lock, mode_after_change
from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.files import is_locked
from include.quality.check import Mode
from include.quality.check_throttle import last_check_text, pause_left_s
from include.quality.verified_stores import SERVED, confirm_if_nothing_is_new
from include.settings import Settings


class TriggerCheckIfDue(BaseOperator):
    """Emits an event of the asset that starts a check. Skipped if nothing is to be verified, or the last check took long."""

    def __init__(self, *, read_model: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(outlets=[Asset(check_due_asset(read_model))], **operator)
        self.read_model = read_model

    def execute(self, context: Any) -> None:  # noqa: ANN401, ARG002 - Airflow's
        """Return if a check is due; else raise AirflowSkipException with the reason, and with the time of the last check."""
        settings = Settings()
        model = read_model(self.read_model, settings.declaration_folders)
        reason = skip_reason(settings, model, time.time())
        if reason is not None:
            raise AirflowSkipException(
                f"No check follows: {reason} {last_check_text(settings.home, model.name)}"
            )
        self.log.info("%s: a check of %s follows", model.name, ", ".join(SERVED))


def skip_reason(settings: Settings, model: ReadModel, now_s: float) -> str | None:
    """Return why no check of a read model is due after a compaction; None if one is.

    If nothing is new since the last one, it is published that lake and nodes are still verified up to the end of the log.
    """
    mode = mode_after_change(model)
    if mode is Mode.INCREMENTAL and confirm_if_nothing_is_new(settings, model):
        return f"{model.name} has no event since its last check, and its table is unchanged."
    if is_locked(check_lock(settings, model.name)):
        return f"a check of {model.name} is running."
    left_s = pause_left_s(settings.home, model.name, now_s, mode)
    if left_s:
        return f"the last check of {model.name} took long, and the next one may begin in {left_s:.0f} s."
    return None
