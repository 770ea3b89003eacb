"""FOLDLAKE_STREAM_BATCH_MODE makes routes and read models run in batches that declare real time; a name that it cannot apply to is an error."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from include.declarations.latency import Latency
from include.declarations.latency_override import reload_for_stream, stream_catalog
from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.settings import Settings
from include.settings.systems import system_folder
from include.spark.stream_config import stream_task_slots
from include.stream.slot_planning import BATCH_SLOTS

SUPPORT = Path(__file__).parents[2] / "support"
ROUTES, REKEYED = SUPPORT / "read_models_with_routes", SUPPORT / "read_models_with_rekey"


def settings(folder: Path, *in_batches: str) -> Settings:
    return Settings.of(partitions=4, read_models_dir=folder, stream_batch_mode=in_batches)


def latencies(folder: Path, *in_batches: str) -> dict[str, Latency]:
    catalog = stream_catalog(settings(folder, *in_batches))
    of_models = {name: model.latency for name, model in catalog.models.items()}
    return of_models | {name: route.latency for name, route in catalog.routes.items()}


def in_real_time(folder: Path) -> None:
    """Let the read model with re-keyed events declare real time."""
    module = folder / "daily_deposits.py"
    module.write_text(module.read_text().replace("latency=Latency.SECOND", "latency=Latency.MILLISECONDS"))


def test_only_what_is_named_runs_in_batches() -> None:
    assert set(latencies(ROUTES).values()) == {Latency.MILLISECONDS}
    assert latencies(ROUTES, "payments", "accounts") == {
        "accounts": Latency.SECOND,
        "balance": Latency.MILLISECONDS,
        "payments": Latency.SECOND,
        "postings": Latency.MILLISECONDS,
    }
    assert settings(ROUTES).stream.batch_mode == ()


def test_it_needs_no_slots_of_its_own() -> None:
    of_declared = stream_task_slots(settings(ROUTES))

    assert stream_task_slots(settings(ROUTES, "payments")) == of_declared - 4 + BATCH_SLOTS
    everything = settings(ROUTES, "payments", "postings", "accounts", "balance")
    dead_letters = 4 * len(load_catalog((ROUTES,)).source_topics)
    assert stream_task_slots(everything) == dead_letters + BATCH_SLOTS


def test_the_plain_name_applies_to_every_version_of_a_route(tmp_path: Path) -> None:
    shutil.copytree(ROUTES, tmp_path, dirs_exist_ok=True)
    module = (tmp_path / "postings.py").read_text()
    (tmp_path / "second.py").write_text(module.replace("Route(", "Route(version=2, "))

    found = latencies(tmp_path, "postings")

    assert found["postings"] is found["postings.v2"] is Latency.SECOND
    with pytest.raises(ReadModelError, match=r"names 'postings\.v2', which is no route"):
        latencies(tmp_path, "postings.v2")


def test_the_derived_route_follows_its_read_model(tmp_path: Path) -> None:
    shutil.copytree(REKEYED, tmp_path, dirs_exist_ok=True)
    in_real_time(tmp_path)
    assert latencies(tmp_path)["daily-deposits-by-key"] is Latency.MILLISECONDS

    found = latencies(tmp_path, "daily-deposits")

    assert found["daily-deposits"] is found["daily-deposits-by-key"] is Latency.SECOND
    with pytest.raises(ReadModelError, match="follows it: name daily-deposits"):
        latencies(tmp_path, "daily-deposits-by-key")


def test_a_read_model_that_is_imported_again_keeps_it() -> None:
    assert reload_for_stream("accounts", settings(ROUTES)).latency is Latency.MILLISECONDS
    assert reload_for_stream("accounts", settings(ROUTES, "accounts")).latency is Latency.SECOND


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ReadModelError,
        match=r"FOLDLAKE_STREAM_BATCH_MODE names 'posting', .* Known ones: accounts, balance, payments, postings",
    ):
        stream_task_slots(settings(ROUTES, "accounts", "posting"))


def test_an_emission_is_always_in_real_time() -> None:
    folder = SUPPORT / "read_models_with_emissions"
    (emission,) = load_catalog((folder,)).emissions.values()
    with pytest.raises(
        ReadModelError, match=f"emission '{emission.name}': emissions are always in real time"
    ):
        latencies(folder, emission.name)
    found = latencies(folder, emission.read_model)
    assert found[emission.read_model] is Latency.SECOND


def test_a_periodic_emission_has_an_interval_of_its_own() -> None:
    with pytest.raises(
        ReadModelError, match="periodic emission 'product-view-counts': periodic emissions are written at"
    ):
        latencies(system_folder("logs"), "product-view-counts")


def test_the_names_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLAKE_STREAM_BATCH_MODE", " trend, loyalty,")
    assert Settings.of().stream.batch_mode == ("trend", "loyalty")


def test_an_entry_with_an_interval_replaces_the_declared_one() -> None:
    found = stream_catalog(settings(ROUTES, "accounts:250")).models["accounts"]

    assert found.emit_every == timedelta(milliseconds=250)
    assert found.is_in_batches
    assert reload_for_stream("accounts", settings(ROUTES, "accounts:250")).emit_every == found.emit_every


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("accounts:soon", "give the interval in milliseconds"),
        ("accounts:1", "allowed: None, or a timedelta from 0.1 s to 30 s"),
        ("postings:500", "only a read model has one"),
    ],
)
def test_an_interval_that_cannot_be_is_refused(entry: str, message: str) -> None:
    with pytest.raises(ReadModelError, match=message):
        stream_catalog(settings(ROUTES, entry))


def test_a_read_model_with_an_interval_needs_no_slots_of_its_own() -> None:
    assert stream_task_slots(settings(ROUTES, "accounts:500")) == stream_task_slots(
        settings(ROUTES, "accounts")
    )
