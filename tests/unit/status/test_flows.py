"""Every query of the stream is a flow, by the declarations and the version registry, whether the driver reports it or not."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.declarations.latency import Latency
from include.declarations.latency_override import stream_catalog
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.flows import ActiveFlow, flows
from include.versions.transitions import hand_over, register
from include.versions.version_record import ReadModelVersions, first_version


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ActiveFlow]:
    """The flows of three systems by query, with a candidate of one read model."""
    home: Path = tmp_path_factory.mktemp("home")
    settings = Settings.of(home=home, systems=("pos", "orders", "logs"))
    catalog = stream_catalog(settings)
    records: dict[str, ReadModelVersions] = {
        name: first_version(name, model.newest_fold_revision) for name, model in catalog.models.items()
    }
    loyalty = records["loyalty"]
    now = datetime.now(UTC)
    registered = register(loyalty, run_id="run", reason="a test", fold_revision=1, now=now)
    records["loyalty"] = hand_over(registered, 2)
    return {flow.declared.query: flow for flow in flows(settings, catalog, records)}


def test_each_version_has_its_fold_and_its_emissions(found: dict[str, ActiveFlow]) -> None:
    for number, stage, topic in (
        (1, "live", "loyalty-management-service"),
        (2, "candidate", "loyalty-management-service.v2"),
    ):
        fold = found[f"loyalty/v{number}"].declared
        assert (fold.kind, fold.version, fold.stage) == (FlowKind.FOLD, number, stage)
        assert (fold.source_topic, fold.output_topic) == (
            "loyalty-invoices",
            f"loyalty.v{number}.changelog",
        )
        emission = found[f"emission/notifications/v{number}"].declared
        assert (emission.belongs_to, emission.stage, emission.output_topic) == ("loyalty", stage, topic)


def test_an_emission_that_takes_over_has_its_query_under_another_name(
    found: dict[str, ActiveFlow],
) -> None:
    name = "emission/notifications"
    assert found[f"{name}/v1"].queries == (f"{name}/v1/live", f"{name}/v1")
    assert found[f"{name}/v2"].queries == (f"{name}/v2",)


def test_routes_and_periodic_emissions_have_their_interval(found: dict[str, ActiveFlow]) -> None:
    trend = found["route/trend"].declared
    assert (trend.kind, trend.latency, trend.output_topic) == (
        FlowKind.ROUTE,
        Latency.SECOND,
        "trend-records",
    )
    periodic = found["product-view-counts"].declared
    assert (periodic.kind, periodic.emit_every_s) == (FlowKind.PERIODIC, 10.0)
    assert [query for query, flow in found.items() if not flow.declared.has_query] == ["product-view-counts"]
    assert not found["product-view-counts"].queries
    assert (periodic.belongs_to, periodic.source_topic) == ("product-views", "product-views.v1.changelog")


def test_each_source_topic_has_its_dead_letters_once(found: dict[str, ActiveFlow]) -> None:
    letters = {one.declared.name for one in found.values() if one.declared.kind == FlowKind.DEAD_LETTERS}
    measured = (FlowKind.FOLD, FlowKind.ROUTE, FlowKind.EMISSION)
    sources = {one.declared.source_topic for one in found.values() if one.declared.kind in measured}

    assert letters == sources
