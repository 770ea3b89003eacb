"""`python -m tests.support.rebuild.run_stage STAGE ...`: runs the action of one stage without Airflow, for the kill tests."""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from include.errors import FoldlakeError
from include.rebuild.plan import REBUILD, ROLLBACK
from include.rebuild.retirement import retire_version
from include.rebuild.stage import Action, StageRun
from include.rebuild.stages.rollback import CHOOSE_VERSION
from include.settings import Settings
from include.versions.registry import VersionRegistry
from tests.support.rebuild.stage_runs import stage_run

ACTIONS: dict[str, Callable[[StageRun], object]] = {
    stage.name: stage.work.run
    for plan in (REBUILD, ROLLBACK)
    for stage in plan.all_stages
    if isinstance(stage.work, Action)
} | {"retire": lambda run: retire_version(run.settings, run.read_model, run.version.number)}
OF_ROLLBACK = {stage.name for stage in ROLLBACK.stages}


def main() -> int:
    """Run one action; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = argparse.ArgumentParser(prog="python -m tests.support.rebuild.run_stage", description=__doc__)
    parser.add_argument("stage", choices=sorted(ACTIONS))
    parser.add_argument("--read-model", required=True)
    parser.add_argument("--version", type=int, help="the version; not for register_candidate")
    parser.add_argument(
        "--run-id", help="for register_candidate; of another stage, it is that which registered the version"
    )
    parser.add_argument("--reason", default="a test", help="why")
    parser.add_argument("--fold-revision", type=int, help="for register_candidate; default: the newest")
    parser.add_argument(
        "--start", default="", help="for register_candidate; default: that of the live version"
    )
    parser.add_argument("--grace-hours", type=float, help="for promote")
    parser.add_argument("--force", action="store_true", help="for roll_back")
    arguments = parser.parse_args()
    if arguments.stage != "register_candidate" and arguments.version is None:
        parser.error(f"{arguments.stage} needs --version")
    settings = Settings()
    try:
        result = ACTIONS[arguments.stage](_stage_run(settings, arguments))
    except FoldlakeError as error:
        logging.error("%s", error)  # noqa: TRY400, LOG015 - its message is complete
        return 1
    logging.info("result: %s", result)  # noqa: LOG015 - a program of its own
    return 0


def _stage_run(settings: Settings, arguments: argparse.Namespace) -> StageRun:
    grace_h = settings.rebuild.grace_h if arguments.grace_hours is None else arguments.grace_hours
    # The two DAGs have different forms, and refuse each other's fields.
    of_rebuild = {
        "fold_revision": arguments.fold_revision,
        "approve": False,
        "grace_hours": grace_h,
        "start": arguments.start,
    }
    of_dag = {"force": arguments.force} if arguments.stage in OF_ROLLBACK else of_rebuild
    form: Mapping[str, Any] = {
        "read_model": arguments.read_model,
        "reason": arguments.reason,
        **of_dag,
    }
    return stage_run(
        settings,
        (arguments.read_model,),
        form,
        run_id=_run_id(settings, arguments),
        results={CHOOSE_VERSION.name: arguments.version},
        set_note=logging.getLogger(__name__).info,
    )


def _run_id(settings: Settings, arguments: argparse.Namespace) -> str:
    """Return the run that registered the version, by which the stages find it."""
    if arguments.version is None:
        return arguments.run_id or "manual"
    with VersionRegistry(settings.kafka_connection) as registry:
        version = registry.read()[arguments.read_model].version(arguments.version)
    assert version is not None
    return version.run_id


if __name__ == "__main__":
    sys.exit(main())
