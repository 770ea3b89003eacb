"""The rebuild of a topic is a rebuild with several read models: stages of one version are repeated, the others concern all versions."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from include.declarations.catalog import Catalog
from include.declarations.load import load_catalog
from include.rebuild.errors import RequestError
from include.rebuild.plan import REBUILD, Plan, planned_stages, rebuild_plan
from include.rebuild.request import (
    RebuildRequest,
    RebuiltTopic,
    rebuild_request,
    rebuilt_topic,
    rebuilt_topics,
)
from include.rebuild.stage import Action, PlanStage, SparkJob
from include.settings import CHECKOUT, Settings
from include.versions.version_record import first_version
from tests.support.rebuild.stage_runs import RegisteredRun, stage_run

SUPPORT = Path(__file__).parents[2] / "support"
MODELS = ("accounts", "largest-postings")
TOPIC = RebuiltTopic("postings", "postings.v2", MODELS)
PLAN = rebuild_plan(MODELS, TOPIC.name)
RECORDS = {name: first_version(name, 1) for name in MODELS}
SENT = {"reason": "only large ones", "approve": True}


@pytest.fixture(scope="module")
def declarations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("declarations") / "declared"
    shutil.copytree(SUPPORT / "read_models_with_routes", folder)
    shutil.copytree(SUPPORT / "new_route_versions", folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def catalog(declarations: Path) -> Catalog:
    return load_catalog((declarations,))


def request(catalog: Catalog, **changed: object) -> RebuildRequest:
    return rebuild_request({**SENT, **changed}, catalog.models, 2.0, TOPIC)


def names(catalog: Catalog, **changed: object) -> list[str]:
    planned = planned_stages(PLAN, request(catalog, **changed), RECORDS)
    return [one.stage.name for one in planned]


def test_every_stage_of_a_read_model_comes_before_any_is_promoted() -> None:
    assert [[stage.name for stage in step] for step in PLAN.steps] == [
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


def test_each_stage_is_that_of_a_rebuild() -> None:
    works = {stage.name: stage.work for stage in REBUILD.all_stages}
    for stage in PLAN.all_stages:
        if stage.name not in {"register_versions", "read_sources"}:
            assert stage.work is works[stage.name.rpartition(".")[2]], stage.name


def test_each_stage_works_on_its_own_read_model_or_on_all() -> None:
    assert {
        stage.name: stage.read_models for stage in PLAN.all_stages if "." not in stage.name
    } == dict.fromkeys(("register_versions", "read_sources", "approve", "promote", "abandon"), MODELS)
    assert stage("largest-postings.verify").read_models == ("largest-postings",)


def stage(name: str, plan: Plan = PLAN) -> PlanStage:
    return next(stage for stage in plan.all_stages if stage.name == name)


def test_a_job_gets_its_own_read_model_and_version() -> None:
    found = stage("largest-postings.verify")
    assert isinstance(found.work, SparkJob)
    run = RegisteredRun(Settings.of(), "run-a", found.read_models, {}, {}, datetime.now(UTC), print, print)
    assert found.work.arguments(run)[:4] == ["--read-model", "largest-postings", "--version", "7"]


def test_a_topic_with_one_read_model_has_the_same_kind_of_plan() -> None:
    plan = rebuild_plan(("accounts",), "postings")
    assert stage("accounts.catch_up", plan).read_models == ("accounts",)
    assert plan.commit == stage("promote", plan)


def test_a_dry_run_ends_with_the_last_comparison(catalog: Catalog) -> None:
    found = names(catalog, dry_run=True)
    assert found[-2:] == ["largest-postings.compare", "abandon"]
    assert "approve" not in found


def test_a_stage_of_one_version_shows_its_number(catalog: Catalog) -> None:
    records = RECORDS | {"accounts": RECORDS["accounts"]}
    planned = planned_stages(PLAN, request(catalog), records)
    assert {one.stage.name: one.version for one in planned}["accounts.verify"] == 2
    assert {one.stage.name: one.version for one in planned}["promote"] is None


def test_the_topics_with_new_versions_are_those_that_read_models_fold(catalog: Catalog) -> None:
    assert rebuilt_topics(catalog) == {"postings": TOPIC}
    assert rebuilt_topics(load_catalog()) == {}


def test_a_request_names_the_newest_topic_and_its_read_models(catalog: Catalog) -> None:
    found = request(catalog, reason=" only  large ones ", approve=False)

    assert (found.source_topic, found.read_models) == ("postings.v2", MODELS)
    assert (found.reason, found.approve, found.grace_h) == ("only large ones", False, 2.0)
    assert "approve" not in names(catalog, approve=False)
    assert "approve" in names(catalog, approve=False, max_total_change=5)


@pytest.mark.parametrize(
    ("topic", "conf", "message"),
    [
        ("balance", SENT, "no new version of a topic 'balance'.*allowed: postings"),
        ("postings", {**SENT, "read_model": "accounts"}, "Unknown field: read_model"),
        ("postings", {**SENT, "fold_revision": 1}, "Unknown field: fold_revision"),
        ("postings", {"reason": " "}, "reason is empty"),
        ("postings", {**SENT, "grace_hours": -1}, "grace_hours is -1"),
        ("postings", {**SENT, "max_changed_percent": 101}, "max_changed_percent is 101"),
    ],
)
def test_a_wrong_request_is_refused(catalog: Catalog, topic: str, conf: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        rebuild_request(conf, catalog.models, 2.0, rebuilt_topic(catalog, topic))


def test_a_run_that_was_planned_for_other_read_models_is_refused(declarations: Path) -> None:
    """A read model that was declared in between would be registered, and never be built."""
    settings = Settings.of(read_models_dir=declarations)
    work = stage("register_versions").work
    assert isinstance(work, Action)

    with pytest.raises(
        RequestError, match=r"accounts, largest-postings fold postings now.*planned for accounts"
    ):
        work.run(stage_run(settings, ("accounts",), SENT))


def test_the_documentation_says_what_is_added() -> None:
    page = CHECKOUT.joinpath("docs", "routes.md").read_text(encoding="utf-8")
    own = [
        f"| `{stage.name}` | {stage.description} | {stage.leaves} | {stage.next_try} |"
        for stage in PLAN.all_stages[:2]
    ]
    assert [line for line in own if line not in page] == [], "docs/routes.md needs these lines"
