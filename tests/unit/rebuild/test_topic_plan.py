"""The rebuild of a topic repeats a rebuild's stages for each read model behind it, and promotes all of them with one stage."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from include.declarations.catalog import Catalog
from include.declarations.load import load_catalog
from include.rebuild.comparison import report
from include.rebuild.errors import RequestError
from include.rebuild.plan import kill_table
from include.rebuild.stage import Action, Approval, PlanStage, SparkJob, StageRun
from include.rebuild.topic_versions.binding import for_read_model
from include.rebuild.topic_versions.plan import planned_stages, topic_plan
from include.rebuild.topic_versions.request import rebuilt_topics, topic_request
from include.settings import CHECKOUT, Settings
from tests.support.lake.comparison_example import EXAMPLE

SUPPORT = Path(__file__).parents[2] / "support"
MODELS = ("accounts", "largest-postings")
RESULTS: dict[str, Any] = {
    "register_versions": {
        "topic": "postings.v2",
        "grace_h": 1.5,
        "versions": {
            "accounts": {"version": 7, "fold_revision": 2},
            "largest-postings": {"version": 3, "fold_revision": 1},
        },
    },
    "accounts.hydrate": "| accounts |",
    "largest-postings.hydrate": "| largest |",
}
SENT = {"reason": "only large ones", "approve": True}
RUN = StageRun(Settings.of(), "run-a", SENT, SENT, RESULTS, datetime.now(UTC), set_note=print)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("declarations") / "declared"
    shutil.copytree(SUPPORT / "read_models_with_routes", folder)
    shutil.copytree(SUPPORT / "new_route_versions", folder, dirs_exist_ok=True)
    return load_catalog((folder,))


def test_every_stage_of_a_read_model_comes_before_any_is_promoted() -> None:
    names = [[stage.name for stage in step] for step in topic_plan("postings", MODELS).steps]

    assert names == [
        ["register_versions"],
        ["read_sources"],
        [
            "accounts.catch_up",
            "accounts.build_staging",
            "largest-postings.catch_up",
            "largest-postings.build_staging",
        ],
        ["accounts.verify", "largest-postings.verify"],
        ["accounts.compare", "largest-postings.compare"],
        ["accounts.hand_over", "largest-postings.hand_over"],
        ["accounts.hydrate", "largest-postings.hydrate"],
        ["approve"],
        ["promote"],
        ["accounts.promote_lake", "largest-postings.promote_lake"],
    ]


def stage(name: str) -> PlanStage:
    return next(stage for stage in topic_plan("postings", MODELS).all_stages if stage.name == name)


def test_a_job_gets_its_own_read_model_and_version() -> None:
    work = stage("largest-postings.verify").work
    assert isinstance(work, SparkJob)
    arguments = [RUN.text(argument) for argument in work.arguments]
    assert arguments[:4] == ["--read-model", "largest-postings", "--version", "3"]
    assert RUN.text(work.check_id) == arguments[-1] == "rebuild-largest-postings-v3"


def test_a_comparison_has_the_id_of_its_own_version() -> None:
    work = stage("largest-postings.compare").work
    assert isinstance(work, SparkJob)
    assert RUN.text(work.comparison_id) == "rebuild-largest-postings-v3"
    assert [RUN.text(argument) for argument in work.arguments][-2:] == [
        "--run-id",
        "rebuild-largest-postings-v3",
    ]


def test_the_approval_names_the_read_model_whose_thresholds_are_exceeded(tmp_path: Path) -> None:
    work = stage("approve").work
    assert isinstance(work, Approval)
    within = replace(EXAMPLE, run_id="rebuild-accounts-v7", fields={})
    for comparison in (within, replace(EXAMPLE, run_id="rebuild-largest-postings-v3")):
        report.write(tmp_path, comparison)
    form = {**SENT, "no_negative": True}
    run = replace(RUN, settings=Settings.of(home=tmp_path), form=form, sent=form)

    assert work.exceeded(RUN) == []
    (sentence,) = work.exceeded(run)
    assert sentence.startswith("largest-postings: amount is below zero in 7 keys")


def test_a_dry_run_ends_with_the_last_comparison(catalog: Catalog) -> None:
    request = topic_request("postings", {**SENT, "dry_run": True}, catalog, 2.0)
    names = [planned.stage.name for planned in planned_stages(request)]
    assert names[-2:] == ["largest-postings.compare", "abandon"]
    assert "approve" not in names


def test_an_action_sees_the_run_of_its_own_read_model() -> None:
    seen: list[tuple[str, int, object]] = []
    probe = PlanStage(
        "probe",
        Action(lambda run: seen.append((run.read_model, run.version, run.results["hydrate"]))),
        description="",
        on_failure="",
    )
    work = for_read_model(probe, "accounts").work
    assert isinstance(work, Action)
    work.run(RUN)
    assert seen == [("accounts", 7, "| accounts |")]


def test_a_stage_that_waits_for_a_person_is_not_repeated() -> None:
    with pytest.raises(TypeError):
        for_read_model(stage("approve"), "accounts")


def test_the_approval_names_every_version_and_shows_every_check() -> None:
    work = stage("approve").work
    assert isinstance(work, Approval)
    assert (
        RUN.text(work.subject) == "Promote v7 of accounts, v3 of largest-postings, together? only large ones"
    )
    body = RUN.text(work.body)
    assert "postings.v2" in body
    assert "| accounts |" in body
    assert "| largest |" in body


def test_the_topics_with_new_versions_are_those_that_read_models_fold(catalog: Catalog) -> None:
    assert rebuilt_topics(catalog) == {"postings": MODELS}
    assert rebuilt_topics(load_catalog()) == {}


def test_a_request_names_the_newest_topic_and_its_read_models(catalog: Catalog) -> None:
    request = topic_request("postings", {"reason": " only  large ones ", "approve": False}, catalog, 2.0)

    assert (request.new_topic, request.read_models) == ("postings.v2", MODELS)
    assert (request.reason, request.approve, request.grace_h) == ("only large ones", False, 2.0)
    assert "approve" not in [planned.stage.name for planned in planned_stages(request)]
    limited = topic_request("postings", {**SENT, "approve": False, "max_total_change": 5}, catalog, 2.0)
    assert "approve" in [planned.stage.name for planned in planned_stages(limited)]


@pytest.mark.parametrize(
    ("topic", "conf", "message"),
    [
        ("balance", SENT, "no new version of a topic 'balance'.*allowed: postings"),
        ("postings", {**SENT, "read_model": "accounts"}, "Unknown field: read_model"),
        ("postings", {"reason": " "}, "reason is empty"),
        ("postings", {**SENT, "grace_hours": -1}, "grace_hours is -1"),
        ("postings", {**SENT, "max_changed_percent": 101}, "max_changed_percent is 101"),
    ],
)
def test_a_wrong_request_is_refused(catalog: Catalog, topic: str, conf: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        topic_request(topic, conf, catalog, 2.0)


def test_the_documentation_says_what_is_repeated() -> None:
    page = CHECKOUT.joinpath("docs", "routes.md").read_text(encoding="utf-8")
    lines = kill_table(topic_plan("", ())).splitlines()
    own = [
        line
        for line in lines
        if line.startswith(("| `register_versions", "| `read_sources", "| `promote`", "| `abandon"))
    ]
    assert len(own) == 4
    assert [line for line in own if line not in page] == [], "docs/routes.md needs these lines"
