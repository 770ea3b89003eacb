"""`python -m tests.support.run_stage STAGE ...`: one stage's action by hand, without Airflow. What the kill tests run."""

import argparse
import logging
import sys

from include.declarations.read_model import load_read_models
from include.errors import FoldlakeError
from include.rebuild.handover import hand_over_version
from include.rebuild.hydration import hydrate
from include.rebuild.promotion import promote_version, recheck_candidate, roll_back_version
from include.rebuild.registration import register_candidate
from include.rebuild.request import rebuild_request
from include.rebuild.retirement import abandon_version, retire_version
from include.settings import Settings


def main() -> int:
    """Run one stage; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = argparse.ArgumentParser(prog="python -m tests.support.run_stage", description=__doc__)
    parser.add_argument(
        "stage",
        choices=["register_candidate", "hand_over", "hydrate", "promote", "roll_back", "retire", "abandon"],
    )
    parser.add_argument("--read-model", required=True)
    parser.add_argument("--version", type=int, help="the version; not for register_candidate")
    parser.add_argument("--run-id", help="for register_candidate")
    parser.add_argument("--reason", help="for register_candidate")
    parser.add_argument("--fold-revision", type=int, help="for register_candidate; default: the newest")
    parser.add_argument("--grace-hours", type=float, help="for promote")
    arguments = parser.parse_args()
    if arguments.stage != "register_candidate" and arguments.version is None:
        parser.error(f"{arguments.stage} needs --version")
    try:
        _run(Settings(), arguments)
    except FoldlakeError as error:
        logging.error("%s", error)  # noqa: TRY400, LOG015 - its message is all that is to be said
        return 1
    return 0


def _run(settings: Settings, arguments: argparse.Namespace) -> None:
    model, number = arguments.read_model, arguments.version
    grace_h = settings.rebuild.grace_h if arguments.grace_hours is None else arguments.grace_hours
    if arguments.stage == "register_candidate":
        conf = {
            "read_model": model,
            "reason": arguments.reason,
            "fold_revision": arguments.fold_revision,
            "approve": False,
            "grace_hours": grace_h,
        }
        request = rebuild_request(conf, load_read_models(settings.read_models_dir), settings.rebuild.grace_h)
        print(register_candidate(settings, request, arguments.run_id or "by hand").number)  # noqa: T201
    elif arguments.stage == "hand_over":
        hand_over_version(settings, model, number)
    elif arguments.stage == "hydrate":
        hydrate(settings, model, number)
    elif arguments.stage == "promote":
        recheck_candidate(settings, model, number)
        promote_version(settings, model, number, grace_h)
    elif arguments.stage == "roll_back":
        roll_back_version(settings, model, number)
    elif arguments.stage == "retire":
        retire_version(settings, model, number)
    else:
        abandon_version(settings, model, number)


if __name__ == "__main__":
    sys.exit(main())
