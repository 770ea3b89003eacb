"""The expressions of all declarations of a topic that fail for an event: its dead letter names them."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, concat_ws, lit, struct, substring, when
from pyspark.sql.types import StructType

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    VALUE,
    shared_fields,
    type_column,
)
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.decode import FAILURE
from spark_jobs.folding.expressions.columns import evaluated_once, with_short_names
from spark_jobs.folding.fold_query import fold_failure
from spark_jobs.routing.keyed_rules import state_failure
from spark_jobs.routing.route_query import RouteQuery

LOG = logging.getLogger(__name__)

DECODED = "record:decoded"
RECORD = (KEY, VALUE, PARTITION, OFFSET, TIMESTAMP)
# A letter names as many declarations as fit: the failure is part of its size.
MAX_CHARACTERS = 1_000


@dataclass(frozen=True)
class FailureCheck:
    """What fails for an event in a declaration.

    name: of the declaration, for the dead letter. readers: the event types that it reads. failure: as of `fold_failure`.
    """

    name: str
    readers: tuple[RecordSchema, ...]
    failure: Callable[[DataFrame], Column | None]


def failure_checks(readers: Iterable[ReadModel | Flow]) -> list[FailureCheck]:
    """Return the checks of the read models and flows that read a topic: of every fold revision, as a version may be built with it."""
    checks = []
    for reader in readers:
        if isinstance(reader, ReadModel):
            checks += [
                FailureCheck(
                    f"read model {reader.name}, fold {revision}",
                    reader.event_schemas,
                    partial(fold_failure, reader, revision),
                )
                for revision in sorted(reader.folds)
            ]
        else:
            checks.append(FailureCheck(str(reader), reader.event_schemas, _failure_of(reader)))
    return checks


def _failure_of(flow: Flow) -> Callable[[DataFrame], Column | None]:
    if flow.state is not None:
        # Its query itself writes the dead letters of events whose output fails: that depends on the state.
        return partial(state_failure, flow)
    # Neither the partitions nor the key of pseudonyms change what fails.
    return RouteQuery(flow, 1, 1, 0, b"", {}).failure


def with_failures(events: DataFrame, checks: Iterable[FailureCheck]) -> DataFrame:
    """Return decoded records with the column FAILURE: the declarations that fail for an event, and what of them; null if none does.

    events: has the structs of all event types that the checks read. A declaration that cannot be computed at all fails for no event.
    """
    packed = evaluated_once(events).select(
        struct("*").alias(DECODED), lit(None).cast("string").alias(FAILURE)
    )
    can_fail = False
    for check in checks:
        viewed = packed.select(DECODED, FAILURE, *_columns(check.readers, events))
        viewed = with_short_names(viewed, check.readers)
        try:
            found = check.failure(viewed)
        except (ReadModelError, AnalysisException) as error:
            LOG.warning(
                "no dead letters for expressions of %s: %s", check.name, str(error).partition("\n")[0]
            )
            continue
        if found is None:
            continue
        can_fail = True
        failure = concat_ws("; ", FAILURE, concat(lit(f"{check.name}: "), found))
        packed = viewed.select(DECODED, failure.alias(FAILURE))
    if not can_fail:
        return events.withColumn(FAILURE, lit(None).cast("string"))
    text = substring(col(FAILURE), 1, MAX_CHARACTERS)
    packed = evaluated_once(packed)
    return packed.select(f"`{DECODED}`.*", when(col(FAILURE) != "", text).alias(FAILURE))


def _columns(readers: Sequence[RecordSchema], events: DataFrame) -> list[Column]:
    """Return the columns that a declaration sees of decoded records in DECODED: those of its own event types."""

    def of(name: str) -> Column:
        return col(f"`{DECODED}`.{name}")

    types = [reader.name for reader in readers]
    names = [type_column(name) for name in types]
    present = [name for name in names if isinstance(events.schema[name].dataType, StructType)]
    return [
        *(of(name).alias(name) for name in RECORD if name in events.columns),
        when(of(EVENT_TYPE).isin(types), of(EVENT_TYPE)).alias(EVENT_TYPE),
        *(of(name).alias(name) for name in names),
        *(
            coalesce(*(of(f"{n}.{name}") for n in present), lit(None)).alias(name)
            for name in shared_fields(readers)
        ),
    ]
