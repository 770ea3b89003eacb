"""Emissions are found beside read models; what cannot work is refused."""

from pathlib import Path

import pytest

from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.settings import Settings
from include.settings.systems import system_folder
from include.spark.stream_config import stream_task_slots
from include.stream.slot_planning import query_slots
from tests.support.declarations.refusal import refusal

DECLARED = Path(__file__).parents[2] / "support" / "read_models_with_emissions"
MODULE = """
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.route import Route
EMISSION = Emission(name={name!r}, read_model={model!r}, output_topic={output!r}, output_type="FundsAdded", fields=lambda _: {{}})
"""
ROUTE = """
ROUTE = Route(name="back", source_topic={source!r}, event_types=("FundsAdded",), output_topic={output!r})
"""


def declare(
    folder: Path,
    name: str,
    model: str = "balance",
    output: str = "notices",
    route: tuple[str, str] | None = None,
) -> None:
    text = MODULE.format(name=name, model=model, output=output)
    if route is not None:
        text += ROUTE.format(source=route[0], output=route[1])
    (folder / f"{name.replace('-', '_')}.py").write_text(text)


def test_an_emission_is_one_file_beside_its_read_model() -> None:
    catalog = load_catalog((DECLARED,))
    emission = catalog.emissions["receipts"]
    assert catalog.models[emission.read_model].source_topic == "balance"
    assert emission.output_schema.key_field == "customer"
    assert emission.version_topic(3) == "receipts.v3"
    topic = emission.topic_named("receipts.v3", Settings.of(partitions=4).topics)
    assert (topic.name, topic.partitions, topic.config["retention.ms"]) == ("receipts.v3", 4, "-1")


def test_each_version_of_an_emissions_read_model_has_slots_for_it(tmp_path: Path) -> None:
    settings = Settings.of(partitions=4, read_models_dir=tmp_path, stream_spare_queries=2)
    without = stream_task_slots(settings)
    declare(tmp_path, "notices")
    assert stream_task_slots(settings) == without + 3 * query_slots(settings.stream, 4)


def test_a_read_model_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    declare(tmp_path, "notices", model="blance")
    with pytest.raises(
        ReadModelError, match=r"'blance', which is no read model\. Known read models: balance"
    ):
        load_catalog((tmp_path,))


def test_two_writers_of_one_topic_are_refused(tmp_path: Path) -> None:
    declare(tmp_path, "notices")
    declare(tmp_path, "alerts")
    with pytest.raises(ReadModelError, match="write to notices: give each a topic of its own"):
        load_catalog((tmp_path,))


def test_an_emission_has_a_name_of_its_own(tmp_path: Path) -> None:
    declare(tmp_path, "back", route=("somewhere", "else"))
    with pytest.raises(ReadModelError, match="Two declarations are named 'back'"):
        load_catalog((tmp_path,))


@pytest.mark.parametrize(("output", "route"), [("balance", None), ("notices", ("notices", "balance"))])
def test_an_emission_must_not_lead_back_to_its_read_model(
    tmp_path: Path, output: str, route: tuple[str, str] | None
) -> None:
    declare(tmp_path, "notices", output=output, route=route)
    with pytest.raises(ReadModelError, match="would circulate"):
        load_catalog((tmp_path,))


def test_an_invalid_name_is_refused(tmp_path: Path) -> None:
    declare(tmp_path, "Notices")

    assert "use lower-case letters, digits and dashes" in refusal(tmp_path)


def test_items_that_end_emit_nothing(tmp_path: Path) -> None:
    declare(tmp_path, "notices", model="order-location")

    with pytest.raises(ReadModelError, match="reads order-location, whose items end"):
        load_catalog((tmp_path, system_folder("orders")))
