"""A kind of declaration from outside, in one file: the first event of each key, forwarded to another topic as it is."""

from dataclasses import dataclass
from typing import ClassVar

from foldlake import Flow, FlowDeclaration

TEMPLATE = '''"""The first $source_type of each key of `$source_topic`, on the topic `$name`."""

$import_kind

DECLARATIONS = [Distinct("$name", "$source_topic", ("$source_type",), "$name")]
'''
TEST_TEMPLATE = '''"""Only the first event of each key is forwarded."""

from include.declarations.load import load_catalog
from include.settings import Settings
from stack.declaration_testing.results import routed
from stack.declaration_testing.session import declaration_session

EVENT = $example


def test_only_the_first_event_of_each_key_is_forwarded() -> None:
    (flow,) = (flow for flow in load_catalog(Settings().declaration_folders).flows if flow.name == "$name")
    other = EVENT | {"$key": "another"}
    with declaration_session() as spark:
        found = routed(spark, flow, [EVENT, other, EVENT, other])
    assert [event["$key"] for event in found] == [EVENT["$key"], "another"]
'''


@dataclass(frozen=True)
class Distinct(FlowDeclaration):
    """Forwards the first event of each key of a topic."""

    kind: ClassVar[str] = "distinct"
    template: ClassVar[str] = TEMPLATE
    test_template: ClassVar[str] = TEST_TEMPLATE

    name: str
    source_topic: str
    event_types: tuple[str, ...]
    output_topic: str

    def flows(self) -> tuple[Flow, ...]:
        """Return a flow that counts the events of each key."""
        return (
            Flow(
                self.kind,
                self.name,
                self.source_topic,
                self.event_types,
                self.output_topic,
                where="state.event_count = 1",
                state={},
            ),
        )


KINDS = [Distinct]
DECLARATIONS = [Distinct("first-deposits", "balance", ("FundsAdded",), "first-deposits")]
