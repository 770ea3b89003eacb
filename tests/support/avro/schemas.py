"""Hypothesis strategies for Avro schemas: an event type's, and those that writers of it may have."""

import json
from dataclasses import dataclass

import fastavro
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.support.avro.drawn_types import SYMBOLS, Avro, Draw, Names, branch_kind, new_field

# Reader's type -> the writer's types that are converted to it.
PROMOTED = {
    "long": ["int"],
    "float": ["int", "long"],
    "double": ["int", "long", "float"],
    "bytes": ["string"],
    "string": ["bytes"],
}


@dataclass(frozen=True)
class SchemaCase:
    """An event type's schema, a writer's, and the seed of the payloads."""

    reader: str
    writer: str
    seed: int


@st.composite
def schema_cases(draw: Draw) -> SchemaCase:
    """Return a reader's schema, and the one of a writer that has evolved apart from it."""
    names = Names()
    fields = [new_field(draw, f"f{number}", names, 0) for number in range(draw(st.integers(1, 4)))]
    time = {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    namespace = draw(st.sampled_from(("", "shop", "other.place")))
    reader = {"type": "record", "name": "Event", "namespace": namespace, "fields": [time, *fields]}
    # A union may have lost a branch that defined a name.
    assume(_is_valid(reader))
    writer = _evolved_record(draw, reader, names, top=True) if draw(st.integers(0, 5)) else reader
    if not _is_valid(writer):
        writer = reader
    return SchemaCase(json.dumps(reader), json.dumps(writer), draw(st.integers(0, 2**32)))


def generated_cases(number: int) -> list[SchemaCase]:
    """Return schemas, the same ones in every run."""
    cases: list[SchemaCase] = []

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schema_cases())
    def collect(case: SchemaCase) -> None:
        cases.append(case)

    collect()
    return cases


def _is_valid(schema: Avro) -> bool:
    try:
        fastavro.parse_schema(json.loads(json.dumps(schema)))
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType):
        return False
    return True


def _evolved_record(draw: Draw, record: Avro, names: Names, *, top: bool = False) -> Avro:
    """Return a writer's record. The reader's gets the aliases by which it finds what the writer calls otherwise."""
    found = dict(record)
    fields = []
    for declared in record["fields"]:
        change = draw(st.sampled_from(("keep", "type", "type", "type", "drop", "rename")))
        if change == "drop" and "default" in declared and not _defines(declared["type"]):
            continue
        kept = {name: value for name, value in declared.items() if name != "aliases"}
        if change == "type" and declared["name"] != "occurredOn":
            kept.pop("default", None)
            kept["type"] = _evolved(draw, declared["type"], names)
        if change == "rename":
            kept["name"] = f"old_{declared['name']}"
            if draw(st.sampled_from((True, True, False))):
                declared["aliases"] = [kept["name"]]
        fields.append(kept)
    if draw(st.booleans()):
        # Of its own types, so that none contains itself.
        own = Names(next_number=names.next_number)
        fields.insert(draw(st.integers(0, len(fields))), new_field(draw, "onlyWritten", own, 1))
        names.next_number = own.next_number
    found["fields"] = draw(st.permutations(fields)) if draw(st.integers(0, 3)) == 0 else fields
    if top:
        found["namespace"] = draw(st.sampled_from((record["namespace"], "writers")))
    elif draw(st.integers(0, 3)) == 0:
        found["name"] = names.new("Renamed")
        if draw(st.booleans()):
            record["aliases"] = [found["name"]]
    return found


def _evolved(draw: Draw, avro_type: Avro, names: Names) -> Avro:
    if isinstance(avro_type, list):
        return _evolved_union(draw, avro_type, names)
    if draw(st.integers(0, 4)) == 0 and avro_type != "null":
        return ["null", avro_type]
    if isinstance(avro_type, str):
        return draw(st.sampled_from(PROMOTED[avro_type])) if avro_type in PROMOTED else avro_type
    found = dict(avro_type)
    match avro_type["type"]:
        case "record":
            return _evolved_record(draw, avro_type, names)
        case "array":
            found["items"] = _evolved(draw, avro_type["items"], names)
        case "map":
            found["values"] = _evolved(draw, avro_type["values"], names)
        case "enum":
            found.pop("default", None)
            found["symbols"] = draw(st.permutations(SYMBOLS))[: draw(st.integers(1, 4))]
        case _ if avro_type.get("logicalType") == "decimal" and "precision" in avro_type:
            found["scale"] = max(0, avro_type["scale"] - draw(st.integers(0, 2)))
            found["precision"] = max(1, found["scale"], avro_type["precision"] - draw(st.integers(-2, 2)))
        case _ if "logicalType" in avro_type:
            found["logicalType"] = avro_type["logicalType"].replace("millis", "micros")
    return found


def _evolved_union(draw: Draw, union: Avro, names: Names) -> Avro:
    branches = [_evolved(draw, one, names) if draw(st.booleans()) else one for one in union]
    branches = [one for one in branches if not isinstance(one, list)]
    kept = list({branch_kind(one): one for one in branches}.values()) or ["null"]
    return draw(
        st.sampled_from(
            (kept, list(reversed(kept)), kept[0] if len(kept) == 1 or not _defines(kept[1:]) else kept)
        )
    )


def _defines(avro_type: Avro) -> bool:
    """Whether a type defines a name, to which a later one may refer."""
    return '"name"' in json.dumps(avro_type)
