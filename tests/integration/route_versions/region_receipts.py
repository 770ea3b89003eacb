"""The receipts that the emission of these tests has written, compared with the routed topics of which it made them."""

import io
import json
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from confluent_kafka import Message

from include.declarations.load import load_catalog
from include.kafka.origins import SourceEvent
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import HEADER_BYTES
from include.position import Offsets
from include.settings import Settings
from include.versions.registry import VersionRegistry, change
from include.versions.transitions import Transition, hand_over, register
from tests.integration.emissions.receipts import amount_of
from tests.support.stream_process import records_of
from tests.support.waiting import wait_until

DECLARATIONS = Path(__file__).parents[2] / "support" / "read_models_with_route_versions"
CATALOG = load_catalog((DECLARATIONS,))
EMISSION = CATALOG.emissions["region-receipts"]
READ_MODEL = EMISSION.read_model
SOURCE = CATALOG.routes["regional"].source_topic
# The topics and the queries of the rules, which are the versions of the route.
TOPICS = {1: "regional-deposits", 2: "regional-deposits.v2"}
ROUTES = {1: "route/regional", 2: "route/regional.v2"}
RULES = {1: lambda amount: amount >= 1, 2: lambda amount: amount < 200}
TIMEOUT_S = 400


class Receipt(NamedTuple):
    """What is written for a deposit by a rule."""

    id: int
    region: str
    amount: Decimal
    deposits: int
    total: Decimal
    rule: int


def routed(number: int, rule: int) -> bool:
    """Whether a rule routes the deposit with this number."""
    return bool(RULES[rule](amount_of(number)))


def only_by(rule: int, numbers: Collection[int]) -> set[int]:
    """Return the deposits that only this rule routes."""
    return {number for number in numbers if routed(number, rule) and not routed(number, 3 - rule)}


def receipts(settings: Settings, topic: str = EMISSION.output_topic) -> list[tuple[SourceEvent, Receipt]]:
    """Return the receipts in a topic with their origins, one partition after the other."""
    found = []
    for message in records_of(settings, topic):
        fields = _decoded(message, EMISSION.output_schema)
        fields.pop("occurredOn")
        origin = SourceEvent.of(message)
        assert origin is not None
        found.append((origin, Receipt(**{**fields, "id": int(fields["id"])})))
    return found


def numbers(settings: Settings) -> list[int]:
    """Return the number of each receipt for consumers."""
    return [receipt.id for _, receipt in receipts(settings)]


def wait_for_all(settings: Settings, rule: int, wanted: Collection[int]) -> None:
    """Wait until consumers have a receipt for each of these deposits that a rule routes, and its route has committed all of them."""
    routed_ones = {number for number in wanted if routed(number, rule)}
    wait_until(lambda: routed_ones <= set(numbers(settings)), "the receipts are written", timeout_s=TIMEOUT_S)
    ends = Offsets(_ends(settings, SOURCE))
    for route in ROUTES.values():
        wait_until(partial(_has_committed, settings, route, ends), f"{route} commits", timeout_s=TIMEOUT_S)


def wait_for_rule(settings: Settings, rule: int) -> None:
    """Wait until the newest receipts for consumers are by this rule."""

    def has_come() -> bool:
        found = receipts(settings)
        return bool(found) and found[-1][1].rule == rule

    wait_until(has_come, f"receipts by rule {rule}", timeout_s=TIMEOUT_S)


def require_exact(settings: Settings, count: int) -> None:
    """Fail unless each of this number of deposits has one receipt, or none if a rule leaves it out, with the state of the rule's topic."""
    everything = range(1, count + 1)
    by_both = {number for number in everything if routed(number, 1) and routed(number, 2)}
    wait_until(lambda: by_both <= set(numbers(settings)), "all receipts are written", timeout_s=TIMEOUT_S)
    expected = {rule: _expected(settings, rule) for rule in TOPICS}
    newest: dict[tuple[int, str], int] = defaultdict(int)
    seen = set()
    for origin, receipt in receipts(settings):
        assert receipt.id not in seen, f"receipt {receipt} was written twice"
        seen.add(receipt.id)
        assert origin.topic == TOPICS[receipt.rule]
        assert receipt == expected[receipt.rule][origin.partition, origin.offset]
        assert receipt.deposits > newest[receipt.rule, receipt.region], "not in the region's order"
        newest[receipt.rule, receipt.region] = receipt.deposits


def change_versions(settings: Settings, *transitions: Transition) -> None:
    with VersionRegistry(settings.kafka_connection) as registry:
        for transition in transitions:
            change(registry, READ_MODEL, transition)


def start_candidate(settings: Settings, rule: int) -> int:
    """Add a version that folds this rule's topic as a candidate; return its number."""
    now = datetime.now(UTC)
    with VersionRegistry(settings.kafka_connection) as registry:
        number = len(registry.read()[READ_MODEL].versions) + 1
    change_versions(
        settings,
        partial(
            register,
            run_id=f"run {number}",
            reason="a test",
            fold_revision=1,
            now=now,
            source_topic=TOPICS[rule],
        ),
        partial(hand_over, number=number),
    )
    return number


def _expected(settings: Settings, rule: int) -> dict[tuple[int, int], Receipt]:
    """Return the receipt for each record of a rule's topic, by its partition and offset."""
    schema = CATALOG.routes["regional"].output_schema
    counts: dict[str, int] = defaultdict(int)
    totals: dict[str, Decimal] = defaultdict(Decimal)
    expected = {}
    for message in records_of(settings, TOPICS[rule]):
        fields = _decoded(message, schema)
        region = fields["region"]
        counts[region] += 1
        totals[region] += fields["amount"]
        number = int(fields["id"])
        fee = rule - 1
        assert fields["amount"] == (amount_of(number) - fee).quantize(Decimal("0.01"))
        expected[message.partition() or 0, message.offset() or 0] = Receipt(
            number, region, fields["amount"], counts[region], totals[region], rule
        )
    return expected


def _decoded(message: Message, schema: RecordSchema) -> dict[str, Any]:
    parsed = fastavro.parse_schema(schema.parsed())
    record = fastavro.schemaless_reader(io.BytesIO((message.value() or b"")[HEADER_BYTES:]), parsed, None)
    assert isinstance(record, dict)
    assert message.key() == record["region"].encode()
    return record


def _ends(settings: Settings, topic: str) -> dict[int, int]:
    ends: dict[int, int] = {}
    for message in records_of(settings, topic):
        ends[message.partition() or 0] = (message.offset() or 0) + 1
    return ends


def _has_committed(settings: Settings, query: str, ends: Offsets) -> bool:
    """Whether a query's checkpoint covers these ends of the source."""
    checkpoint = settings.home / "checkpoints" / query
    batches = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdigit()]
    if not batches:
        return False
    text = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()[2]
    return Offsets.from_json(json.loads(text)[SOURCE]).covers(ends)
