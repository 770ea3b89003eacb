"""The status of each flow and of each source topic, and the document of all of them."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from include.declarations.latency import Latency
from include.kafka.record_ends import OpenTransaction
from include.stream.folded_offsets import EventTimeAhead
from include.stream.query_reports import Phase, QueryReport

# A flow that has read everything has a rate of 0 once its last batch, its newest event and its newest output are older than this. In real
# time, the next batch ends only with the interval.
QUIET_S = 10.0


class FlowKind(StrEnum):
    """The kinds of flow that Foldlake itself has. A kind that is declared elsewhere has its own word (include/declarations/kinds/)."""

    FOLD = "fold"
    ROUTE = "route"
    EMISSION = "emission"
    PERIODIC = "periodic emission"
    DEAD_LETTERS = "dead letters"
    OTHER = "query"  # the driver reports a query that this process does not know


@dataclass(frozen=True)
class FlowStatus:
    """One flow: what a query of the stream makes of a source topic.

    kind: a FlowKind, or the word for another kind.
    query: name of the query; without one, that of the flow. has_query: whether the driver has a query for it, and not a thread.
    name: of the flow; of a route, with the version if it is a later one; of dead letters, their source topic.
    belongs_to: name of the read model, route or other declaration that it is a part of; empty for dead letters.
    version, stage: of the read model's version; None and empty for a flow without one. What has no versions of a read model is live.
    latency, emit_every_s: as declared, or as FOLDLAKE_STREAM_BATCH_MODE overrides it; emit_every_s is None if there is no interval.
    events: source events, read or not. events_behind: its lag: those that it has not read, as far as its outputs and commits show.
        None for a flow whose lag is not measured.
    records: number of records appended to the output topic; None if that is not known.
    newest_event_age_s: age of the newest record of the source topic by the record's time in Kafka. newest_output_age_s: age of the
        newest state record or tick. None before the first.
    still_s: for how long events have waited and none was folded; None while the folds keep up, and for a version that is not live.
    event_time_ahead: a record among the last of the changelog with an event time in the future; None if there is none.
    report: of the driver on the query; None while no driver reports it.
    """

    query: str
    kind: str
    name: str
    belongs_to: str = ""
    version: int | None = None
    stage: str = ""
    source_topic: str = ""
    output_topic: str = ""
    latency: Latency = Latency.MILLISECONDS
    emit_every_s: float | None = None
    events: int | None = None
    events_behind: int | None = None
    records: int | None = None
    newest_event_age_s: float | None = None
    newest_output_age_s: float | None = None
    still_s: float | None = None
    event_time_ahead: EventTimeAhead | None = None
    report: QueryReport | None = None
    has_query: bool = True

    # Properties that are in the document.
    COMPUTED: ClassVar[tuple[str, ...]] = ("rate_per_s",)

    @property
    def rate_per_s(self) -> float | None:
        """Rows processed per second in the last finished batch; 0 while the flow is quiet, None before the first batch."""
        batch = None if self.report is None else self.report.last_batch
        if batch is None or not batch.finished_at:
            return None
        batch_age_s = (datetime.now(UTC) - datetime.fromisoformat(batch.finished_at)).total_seconds()
        ages_s = (batch_age_s, self.newest_event_age_s, self.newest_output_age_s)
        is_quiet = not self.events_behind and all(age_s is None or age_s > QUIET_S for age_s in ages_s)
        return 0.0 if is_quiet else batch.processed_rows_per_s


@dataclass(frozen=True)
class SourceStatus:
    """One source topic.

    dead_letters: number of records on its dead-letter topic. stuck_for_s: for how long they have not been written; the flows continue.
    open_transaction: behind which its newest events wait, if one stays open.
    """

    topic: str
    dead_letters: int
    stuck_for_s: float = 0.0
    open_transaction: OpenTransaction | None = None


@dataclass(frozen=True)
class BuildingVersion:
    """A version that a rebuild builds; the stream driver does not fold it yet. created_at: ISO time."""

    read_model: str
    version: int
    fold_revision: int
    created_at: str
    reason: str


@dataclass(frozen=True)
class StreamStatus:
    """The status of the whole stream."""

    flows: tuple[FlowStatus, ...] = ()
    sources: tuple[SourceStatus, ...] = ()
    building: tuple[BuildingVersion, ...] = ()

    # Properties that are in the document, before the fields.
    COMPUTED: ClassVar[tuple[str, ...]] = (
        "state",
        "driver_pid",
        "events_behind",
        "newest_event_age_s",
        "dead_letters",
    )

    @property
    def reports(self) -> tuple[QueryReport, ...]:
        """What the running driver reports on its queries."""
        return tuple(flow.report for flow in self.flows if flow.report is not None)

    @property
    def state(self) -> str:
        """running, catching up, failing, standing still or not running."""
        phases = {report.phase for report in self.reports}
        if not phases:
            return "not running"
        if phases & {Phase.FAILED, Phase.REFUSED}:
            return "failing"
        if phases & {Phase.CATCHING_UP, Phase.STARTING}:
            return "catching up"
        return "standing still" if any(flow.still_s is not None for flow in self.flows) else "running"

    @property
    def driver_pid(self) -> int | None:
        """Process id of the running driver; None if there is none."""
        return next((report.driver_pid for report in self.reports), None)

    @property
    def events_behind(self) -> int:
        """The largest lag of any flow."""
        return max((flow.events_behind for flow in self.flows if flow.events_behind is not None), default=0)

    @property
    def newest_event_age_s(self) -> float | None:
        """Age of the newest event of any source topic; None if there is none."""
        ages_s = (flow.newest_event_age_s for flow in self.flows)
        return min((age_s for age_s in ages_s if age_s is not None), default=None)

    @property
    def dead_letters(self) -> int:
        """Number of dead letters of all source topics."""
        return sum(source.dead_letters for source in self.sources)

    @property
    def outputs(self) -> tuple[FlowStatus, ...]:
        """The flows whose lag is measured, without the folds."""
        return tuple(
            flow for flow in self.flows if flow.events_behind is not None and flow.kind != FlowKind.FOLD
        )

    def of_kind(self, kind: str) -> tuple[FlowStatus, ...]:
        """Return the flows of a kind."""
        return tuple(flow for flow in self.flows if flow.kind == kind)

    def to_json(self) -> dict[str, Any]:
        """Return the document, for programs."""
        fields = asdict(self)
        for flow, status in zip(fields["flows"], self.flows, strict=True):
            flow |= {name: getattr(status, name) for name in status.COMPUTED}
        return {name: getattr(self, name) for name in self.COMPUTED} | fields
