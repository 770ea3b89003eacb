"""The dead letters of declarations for some events, as the stream driver would write them."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from include.declarations.catalog import Catalog
from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import record_key
from include.errors import FoldlakeError
from spark_jobs.folding.decode import FAILURE, undecodable
from spark_jobs.folding.json_decode import event_decoder
from spark_jobs.routing.declared_failures import failure_checks, with_failures
from stack.declaration_testing.records import schema_ids


@dataclass(frozen=True)
class DeadLetter:
    """An event that is not folded: its number in the test, from 0, and the reason that its dead letter would have.

    failure: the declaration and the expression that fails, if that is the reason.
    """

    event: int
    reason: str
    failure: str = ""


def events_of(declaration: ReadModel | Flow) -> TopicEvents:
    """Return what a read model or a flow reads."""
    if isinstance(declaration, Flow):
        return declaration.events
    return TopicEvents(declaration.source_topic, declaration.event_schemas, record_key(declaration))


def found_dead_letters(records: DataFrame, declaration: ReadModel | Flow) -> list[DeadLetter]:
    """Return the records that the driver would write to the dead-letter topic, in order."""
    read = events_of(declaration)
    if isinstance(declaration, Flow):
        alone = Catalog({}, (declaration,))
    else:
        alone = Catalog({declaration.name: declaration})
    events = event_decoder(read, schema_ids(read.readers), 1).decode(records)
    rows = undecodable(with_failures(events, failure_checks(alone, read.topic))).orderBy("offset").collect()
    return [DeadLetter(row["offset"], row["reason"], row[FAILURE] or "") for row in rows]


def require_no_dead_letters(
    records: DataFrame, declaration: ReadModel | Flow, *, allow_dead_letters: bool
) -> None:
    """Raise FoldlakeError for a record that the driver would write to the dead-letter topic, unless these are allowed."""
    if not allow_dead_letters and (found := found_dead_letters(records, declaration)):
        raise refused(found[0], events_of(declaration).topic)


def refused(letter: DeadLetter, topic: str) -> FoldlakeError:
    """Return the error of an event that would be a dead letter of a topic."""
    failure = f" ({letter.failure})" if letter.failure else ""
    return FoldlakeError(
        f"Event {letter.event} would be a dead letter of {topic}, with the reason {letter.reason}{failure}: correct the event, or give "
        "`allow_dead_letters=True` to leave it out."
    )
