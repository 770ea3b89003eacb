"""In real time, fields may have the names of Foldlake's own columns: folds, items that end, routes, another key, and emissions."""

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.load import read_model
from include.kafka.events import GenericEvent
from include.kafka.topics import dead_letter_topic
from include.kafka.wire_format import split
from include.settings import Settings
from tests.support.faults import tricky_names as tricky
from tests.support.stream_process import EventSource, make_topics, records_of, states
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

TOPIC = "tricky"
MODULES = {
    "tricky": """
from tests.support.faults.tricky_names import read_model
DECLARATIONS = [read_model("tricky", "tricky", ("Rating", "Review"))]
""",
    "parcels": """
from datetime import timedelta
from include.declarations.expiry import Expiry
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField

def parcel():
    from pyspark.sql.functions import col
    return col("window")

def fold():
    from pyspark.sql import functions as F
    names = {"window": "window", "has_ended": "has_ended", "created": "created", "timestamp": "record:timestamp"}
    return {name: F.max_by(source, "record:offset") for name, source in names.items()}

def is_final():
    from pyspark.sql.functions import col
    return col("has_ended") == 1

DECLARATIONS = [ReadModel(
    name="parcels", source_topic="parcels", event_types=("Parcel",), key=parcel, folds={1: fold}, ended=is_final,
    expires=Expiry(time="created", field="created", after=timedelta(hours=6)),
    state=(
        StateField("window", "string"), StateField("has_ended", "long"), StateField("created", TIMESTAMP_MILLIS),
        StateField("timestamp", TIMESTAMP_MILLIS),
    ),
)]
""",
    "by_reason": """
from include.declarations.read_model import ReadModel, StateField

def reason():
    from pyspark.sql.functions import col
    return col("reason").cast("string")

def fold():
    from pyspark.sql import functions as F
    return {"count": F.count(F.lit(1)), "offset": F.max("offset"), "value": F.max("value")}

DECLARATIONS = [ReadModel(
    name="by-reason", source_topic="tricky", event_types=("Rating",), key=reason, folds={1: fold}, rekey=True,
    state=(StateField("count", "long"), StateField("offset", "long"), StateField("value", "long")),
)]
""",
    "copies": """
from include.declarations.kinds.emission import Emission
from tests.support.faults.tricky_names import EVENT_NAMES

def fields(revision):
    from pyspark.sql.functions import col
    names = {name: col(name) for name in ("subject", "occurredOn", *EVENT_NAMES)}
    return names | {"state": col("state.count"), "key": col("state.event_count")}

DECLARATIONS = [Emission(
    name="copies", read_model="tricky", output_topic="tricky-copies", output_type="Copy", fields=fields,
)]
""",
}
PARCEL = """{"type": "record", "name": "Parcel", "namespace": "test", "foldlake.key": "window",
"foldlake.lifetime": {"created": "created", "hours": 4}, "fields": [
{"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}},
{"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
{"name": "window", "type": "string"}, {"name": "has_ended", "type": "long"}, {"name": "timestamp", "type": "long"}]}"""
SUBJECTS = 5


@pytest.fixture(scope="module")
def home(
    servers: Settings, keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    folder = tmp_path_factory.mktemp("tricky")
    tricky.write_schemas(folder)
    (folder / "Parcel.avsc").write_text(PARCEL)
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    with sharing_servers(
        servers, keep_home, stream_spare_queries=1, **SHORT_COMMITS, read_models_dir=folder
    ) as settings:
        for topic in (TOPIC, "parcels"):
            make_topics(settings, topic)
        yield settings


def append(settings: Settings, numbers: range) -> None:
    """Append ratings and reviews alternately."""
    source = EventSource(settings, TOPIC)
    now = datetime.now(UTC)
    for number in numbers:
        subject = f"s{number % SUBJECTS}"
        schema = event_schema("Rating" if number // SUBJECTS % 2 else "Review", settings.declaration_folders)
        values = tricky.event(number, subject) | {"occurredOn": now}
        source.append_raw(subject.encode(), source.serializer.serialize(GenericEvent(schema, values)))
    source.flush()


def append_parcels(settings: Settings, number: int) -> None:
    """Append an event for each of three parcels. The second event of the first parcel ends it."""
    source = EventSource(settings, "parcels")
    schema = event_schema("Parcel", settings.declaration_folders)
    now = datetime.now(UTC)
    for parcel in range(3):
        values = {
            "occurredOn": now,
            "created": CREATED,
            "window": f"p{parcel}",
            "has_ended": int(parcel == 0 and number == 2),
            "timestamp": number,
        }
        source.append_raw(f"p{parcel}".encode(), source.serializer.serialize(GenericEvent(schema, values)))
    source.flush()


CREATED = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)


def folded(settings: Settings, name: str) -> dict[str, dict[str, Any]]:
    model = read_model(name, settings.declaration_folders)
    return {key: record.state for key, record in states(settings, model, f"{name}.v1.changelog").items()}


def test_all_queries_read_the_fields(home: Settings) -> None:
    append(home, range(20))
    append_parcels(home, 1)
    with stream_driver(home):
        wait_until(lambda: len(folded(home, "tricky")) == SUBJECTS, "the first events are folded")
        append(home, range(20, 40))
        append_parcels(home, 2)
        expected = {f"s{number % SUBJECTS}": tricky.expected(number) for number in range(35, 40)}
        wait_until(lambda: folded(home, "tricky") == expected, "every state is exact")
        parcels = {f"p{n}": {"window": f"p{n}", "has_ended": 0, "created": CREATED} for n in (1, 2)}

        def without_time() -> dict[str, dict[str, Any]]:
            found = folded(home, "parcels")
            times = [state.pop("timestamp") for state in found.values()]
            assert all(CREATED < time < datetime.now(UTC) + timedelta(hours=1) for time in times)
            return found

        wait_until(lambda: without_time() == parcels, "the parcel that has ended has left")
        ratings = [number for number in range(40) if number // SUBJECTS % 2]
        reason = 1_000 * tricky.EVENT_NAMES.index("reason")
        wait_until(
            lambda: len(folded(home, "by-reason")) == len(ratings), "the events are folded under another key"
        )
        assert folded(home, "by-reason").keys() == {str(reason + number) for number in ratings}
        wait_until(lambda: len(copies(home)) == 40, "every event is emitted")
    for number, copy in copies(home).items():
        own = tricky.event(number, f"s{number % SUBJECTS}")
        count = tricky.expected(number)["count"]
        assert copy == own | {"state": count, "key": number // SUBJECTS + 1}
    for topic in (TOPIC, "parcels", "tricky.by-by-reason"):
        assert records_of(home, dead_letter_topic(topic)) == []


def copies(settings: Settings) -> dict[int, dict[str, Any]]:
    """Return the records of the emission by the number of their event, without the time."""
    schema = fastavro.parse_schema(event_schema("Copy", settings.declaration_folders).parsed())
    found = {}
    for message in records_of(settings, "tricky-copies"):
        _, body = split(message.value() or b"")
        copy: Any = fastavro.schemaless_reader(io.BytesIO(body), schema, None)
        del copy["occurredOn"]
        found[copy["value"] - 1_000 * tricky.EVENT_NAMES.index("value")] = copy
    return found
