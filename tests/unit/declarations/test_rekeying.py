"""A read model that declares `rekey` folds what a derived route writes; what would interfere with that route is refused."""

import shutil
from pathlib import Path

import pytest

from include.declarations.key_rule import require_event_fields
from include.declarations.load import load_catalog
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError
from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from include.stream.slot_planning import BATCH_SLOTS

DECLARED = Path(__file__).parents[2] / "support" / "read_models_with_rekey"
TOPIC = "balance.by-daily-deposits"
ROUTE = """
from include.declarations.kinds.route import Route
ROUTE = Route(name={name!r}, source_topic={source!r}, event_types=("FundsAdded",), output_topic={output!r})
"""
OTHER = """
from dataclasses import replace
from include.declarations.topic_options import TopicOptions
from include.read_models.balance import model
READ_MODEL = replace(model.READ_MODEL, name="other", topic=TopicOptions(partitions=6, retention_ms=5))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(DECLARED, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_route_writes_the_events_under_the_key_of_the_read_model() -> None:
    catalog = load_catalog((DECLARED,))
    model, route = catalog.models["daily-deposits"], catalog.routes["daily-deposits-by-key"]

    assert (model.source_topic, model.events_topic) == (TOPIC, "balance")
    assert (route.source_topic, route.output_topic, route.output_type) == ("balance", TOPIC, None)
    assert route.key is model.key
    assert sorted(catalog.source_topics) == ["balance", TOPIC]


def test_the_key_of_a_record_is_that_of_the_read_model_instead_of_the_entity() -> None:
    catalog = load_catalog((DECLARED,))

    assert catalog.record_key(TOPIC) is catalog.models["daily-deposits"].key
    assert catalog.record_key("balance") is None
    assert {schema.key_field for schema in catalog.event_schemas(TOPIC)} == {None}
    assert {schema.key_field for schema in catalog.event_schemas("balance")} == {"customerId"}


def test_the_topic_has_the_partitions_of_the_events_and_is_kept_for_ever(folder: Path) -> None:
    (folder / "other.py").write_text(OTHER)
    catalog = load_catalog((folder,))

    assert catalog.models["daily-deposits"].topic == TopicOptions(partitions=6)
    assert catalog.routes["daily-deposits-by-key"].source == TopicOptions(partitions=6, retention_ms=5)
    assert catalog.partitions(TOPIC, Settings.of(partitions=4).topics) == 6


def test_route_and_fold_share_the_slots_of_batches_and_dead_letters_have_their_own() -> None:
    settings = Settings.of(partitions=4)
    with_model = settings.changed(read_models_dir=DECLARED)

    added = BATCH_SLOTS + 4
    assert stream_task_slots(with_model) == stream_task_slots(settings) + added


def test_the_command_is_of_the_topic_of_the_events() -> None:
    (api,) = (api for api in load_catalog((DECLARED,)).apis if api.model.name == "daily-deposits")

    assert [command.path for command in api.commands] == ["/api/daily-deposits.add"]
    assert api.model.events_topic == "balance"


@pytest.mark.parametrize(
    ("name", "source", "output", "message"),
    [
        ("daily-deposits-by-key", "balance", "elsewhere", "has the name of the route that is derived"),
        ("reader", TOPIC, "elsewhere", "Route reader uses balance.by-daily-deposits, which belongs to"),
        ("writer", "balance", TOPIC, "Route writer uses balance.by-daily-deposits, which belongs to"),
    ],
)
def test_a_declaration_that_interferes_is_refused(
    folder: Path, name: str, source: str, output: str, message: str
) -> None:
    (folder / "route.py").write_text(ROUTE.format(name=name, source=source, output=output))

    with pytest.raises(ReadModelError, match=message):
        load_catalog((folder,))


def test_a_key_made_of_kafkas_record_is_refused() -> None:
    with pytest.raises(ReadModelError, match="uses partition of Kafka's record"):
        require_event_fields("daily", "some key", ["amount", "record:partition"])
    require_event_fields("daily", "some key", ["amount"])
