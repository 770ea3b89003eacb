"""The events of a check or comparison: rows of the event table that are proved against the log, and the others from the log itself."""

import logging
import time

import duckdb

from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.position import Offsets
from include.replay.database import EVENT_DATABASE
from include.replay.event_relation import ColumnsMissingError, EventRelation
from include.replay.fold_sql import FoldSql
from include.replay.log_events import event_batches, event_schema
from include.replay.table_events import between, proved_table
from include.replay.table_proof import is_as_proved
from include.settings import Settings
from include.words import plural

LOG = logging.getLogger("foldlake.quality")


class _NoTableError(FoldlakeError):
    """No event table can be used; the message says why."""


class EventSource:
    """Reads the events of a version into the table `events`.

    model: with the source and the start of the version. is_whole: whether the log has all of its events.
    from_log: read all of them from the log. of_table: the number of those that were read from the event table.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        model: ReadModel,
        rules: FoldSql,
        *,
        is_whole: bool = True,
        from_log: bool = False,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._model = model
        self._relation = EventRelation(model, rules)
        self._is_whole = is_whole
        self._from_log = from_log
        self._table = ""
        self._reason = ""
        self.of_table = 0
        self._relation.create(connection, event_schema(model), EVENT_DATABASE)

    def read_all(self, until: Offsets) -> None:
        """Read the events below these offsets that the version folds."""
        since = Offsets()
        started_s = time.monotonic()
        if not self._from_log:
            try:
                since = self._read_table(until)
                LOG.info(
                    "read %s from %s in %.1f s",
                    plural(self.of_table, "event"),
                    self._table,
                    time.monotonic() - started_s,
                )
            except _NoTableError as reason:
                self._reason = str(reason)
                LOG.info("all events are read from the log: %s", reason)
        self.read_log(since, until)

    def read_log(self, since: Offsets, until: Offsets) -> int:
        """Read the events of the log at or above the first offsets and below the second ones; return their number."""
        started_s, before = time.monotonic(), self.number
        batches = event_batches(self._settings, self._model, since, until)
        self._relation.append(self._connection, batches)
        number = self.number - before
        LOG.info("read %s from the log in %.1f s", plural(number, "event"), time.monotonic() - started_s)
        return number

    @property
    def number(self) -> int:
        """The number of events that were read."""
        return self._relation.count(self._connection)

    @property
    def description(self) -> str:
        """Where the events were read from, and what proves them, in words."""
        of_log = self.number - self.of_table
        if self.of_table:
            return f"{plural(self.of_table, 'event')} from {self._table}, as proved against the log; {of_log:,} from the log"
        return f"{plural(of_log, 'event')} from the log" + (f": {self._reason}" if self._reason else "")

    def _read_table(self, until: Offsets) -> Offsets:
        """Add the events of the event table that are proved, and return their ends; raises _NoTableError."""
        model, connection = self._model, self._connection
        if not self._is_whole:
            raise _NoTableError("the log has lost events of the version")
        found = proved_table(self._settings, model)
        if found is None:
            raise _NoTableError("no event table of its topic is proved against the log")
        table, proof = found
        if not model.starts.covers(proof.start):
            raise _NoTableError(f"{table.name} is proved only from a later start on")
        table.register(connection)
        if not is_as_proved(connection, table, proof):
            LOG.error(
                "%s was changed since it was proved. Hint: ./foldlake quality %s names the rows",
                table.name,
                table.declared.name,
            )
            raise _NoTableError(f"{table.name} was changed since it was proved")
        ends = Offsets({p: min(proof.offsets.of(p), end) for p, end in until.items()})
        rows = table.query_of(self._relation, between(model.starts, ends))
        try:
            self._relation.append_rows(connection, f"({rows})")
        except ColumnsMissingError as error:
            raise _NoTableError(f"{table.name} lacks columns that the rules use ({error})") from error
        self._table = table.name
        self.of_table = self._relation.count(connection)
        return ends
