"""A query whose source is quiet stops until the next event; kills, restarts and lost topics meanwhile lose and repeat nothing."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from include.kafka.topics import dead_letter_topic
from include.settings import Settings
from include.stream import query_transfer
from include.stream.checkpoints import query_name
from include.stream.driver_launch import READY
from include.stream.query_reports import Phase, read_queries
from include.stream.query_transfer import HANDED_OVER, QueryTransfer
from tests.support.balance_copy import with_balance_copy
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource, make_topics, records_of
from tests.support.unsupervised_driver import LogFile, SharedDriver, end, launch, log_path
from tests.support.waiting import wait_until

BUSY, QUIET, RECREATED = NAMES = ("busy", "quiet", "recreated")
EVENTS = 20
TIMEOUT_S = 120


class Source:
    """The topic of a read model, its changelog, and what they must contain. bad_records: those that become dead letters."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.name = name
        self.changelog = f"{name}.v1.changelog"
        self.ledger = Ledger()
        self.bad_records = 0
        self._settings = settings
        self._events = EventSource(settings, name)

    def append(self) -> None:
        """Append some events."""
        self._events.append(self.ledger.random_events(EVENTS))

    def append_bad_record(self) -> None:
        """Append a record that becomes a dead letter."""
        self._events.append_raw(b"customer", b"garbage")
        self._events.flush()
        self.bad_records += 1

    def wait_until_folded(self) -> None:
        """Wait until all events are folded."""
        wait_until(
            lambda: self.ledger.is_folded(self._settings, self.changelog),
            f"the events of {self.name} are folded",
        )

    @property
    def repeated(self) -> int:
        """The number of records of events that were folded again, as after a handover while events arrive."""
        return len(records_of(self._settings, self.changelog)) - self.ledger.events

    def assert_folded_once(self, repeated: int = 0) -> None:
        """Assert that the balances are exact, and that each event has one record, but for those that were repeated before."""
        self.ledger.assert_exact(self._settings, self.changelog)
        assert self.repeated == repeated

    @property
    def dead_letters(self) -> int:
        """Their number."""
        return len(records_of(self._settings, dead_letter_topic(self.name)))


@pytest.fixture(scope="module")
def settings(stream_stack: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with three read models, each with a topic of its own, whose queries wait after five seconds."""
    found, folder = (
        # A query of dead letters with few events commits before it waits.
        stream_stack.changed(stream_real_time_interval_s=1, stream_idle_interval_s=5),
        tmp_path_factory.mktemp("read_models"),
    )
    for name in NAMES:
        make_topics(stream_stack, name)
        found = with_balance_copy(found, name, folder)
    return found


@pytest.fixture(scope="module")
def driver(settings: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(settings) as shared:
        yield shared


@pytest.fixture(scope="module")
def sources(settings: Settings) -> dict[str, Source]:
    return {name: Source(settings, name) for name in NAMES}


@pytest.fixture
def log(settings: Settings) -> LogFile:
    """What the driver logs during a test."""
    return LogFile(log_path(settings))


def phases(settings: Settings) -> dict[str, str]:
    """Return the phase of each query that the driver reports."""
    return {query.query: query.phase for query in read_queries(settings.kafka_connection) if query.is_running}


def queries_of(*names: str) -> set[str]:
    """Return the names of the queries of these read models, with those of their dead letters."""
    return {query for name in names for query in (query_name(name, 1), dead_letter_topic(name))}


def wait_until_waiting(settings: Settings, *sources: Source) -> None:
    """Wait until no query of these read models runs, and each has committed everything."""

    def is_waiting() -> bool:
        # A report may be two seconds old, and from before the newest records.
        found = {query.query: query for query in read_queries(settings.kafka_connection)}
        return all(
            query in found
            and found[query].is_running
            and found[query].phase == Phase.WAITING
            and sum(found[query].last_batch.end_offsets.values()) >= source.ledger.events + source.bad_records
            for source in sources
            for query in queries_of(source.name)
        )

    wait_until(is_waiting, "the queries wait for events")


@pytest.fixture
def waiting(settings: Settings, driver: SharedDriver, sources: dict[str, Source]) -> dict[str, Source]:
    """The sources with some more events. All are folded, and the queries of all read models wait."""
    driver.ensure_running()
    for source in sources.values():
        source.append()
    for source in sources.values():
        source.wait_until_folded()
    wait_until_waiting(settings, *sources.values())
    return sources


def test_an_event_starts_the_queries_of_its_topic_alone(
    settings: Settings, waiting: dict[str, Source], log: LogFile
) -> None:
    busy = waiting[BUSY]
    for _ in range(3):
        busy.append()
        busy.wait_until_folded()
        found = phases(settings)
        assert {found[query] for query in queries_of(QUIET, RECREATED)} == {Phase.WAITING}
    log.wait_for(f"{query_name(BUSY, 1)}: {Phase.REAL_TIME}")
    wait_until_waiting(settings, busy)
    for source in waiting.values():
        source.assert_folded_once()


def test_a_bad_record_on_a_quiet_topic_becomes_one_dead_letter(
    settings: Settings, waiting: dict[str, Source]
) -> None:
    quiet = waiting[QUIET]
    before = quiet.dead_letters
    quiet.append_bad_record()
    wait_until(lambda: quiet.dead_letters > before, "the record is a dead letter")
    wait_until_waiting(settings, *waiting.values())
    assert quiet.dead_letters == before + 1
    quiet.assert_folded_once()


def test_driver_that_is_killed_while_its_queries_wait_repeats_nothing_and_waits_again(
    driver: SharedDriver, waiting: dict[str, Source], log: LogFile
) -> None:
    driver.kill()
    log.forget()
    driver.ensure_running()
    # A driver that is not warm starts one fold, that of another read model.
    for query in queries_of(*NAMES):
        log.wait_for(f"{query}: {Phase.WAITING}")
    letters = waiting[BUSY].dead_letters
    waiting[BUSY].append_bad_record()
    for source in waiting.values():
        source.append()
    for source in waiting.values():
        source.wait_until_folded()
        source.assert_folded_once()
    wait_until(lambda: waiting[BUSY].dead_letters > letters, "the record is a dead letter")
    assert waiting[BUSY].dead_letters == letters + 1


def test_queries_that_wait_are_handed_over_and_fold_what_arrives_meanwhile(
    settings: Settings, driver: SharedDriver, waiting: dict[str, Source], log: LogFile
) -> None:
    new = launch(settings, "--standby")
    try:
        log.wait_for(READY)
        log.forget()
        query_transfer.begin(settings.home, QueryTransfer(driver.process.pid, new.pid))
        for _ in range(5):
            waiting[BUSY].append()
        assert driver.process.wait(TIMEOUT_S) == HANDED_OVER
        query_transfer.end(settings.home)
        log.wait_for(f"{query_name(QUIET, 1)}: {Phase.WAITING}")
        waiting[QUIET].append()
        for source in waiting.values():
            source.wait_until_folded()
        wait_until_waiting(settings, *waiting.values())
        for source in waiting.values():
            source.ledger.assert_exact(settings, source.changelog)
        waiting[QUIET].assert_folded_once()
    finally:
        end(settings, new)


def test_topic_that_is_created_again_while_its_queries_wait_is_not_folded_into_the_old_state(
    settings: Settings, waiting: dict[str, Source], log: LogFile
) -> None:
    repeated = waiting[BUSY].repeated
    admin = AdminClient(settings.kafka_connection.client_settings)
    for future in admin.delete_topics([RECREATED]).values():
        future.result()
    wait_until(lambda: RECREATED not in admin.list_topics().topics, "the topic is deleted")
    make_topics(settings, RECREATED)
    log.wait_for(f"query {query_name(RECREATED, 1)} is refused: Kafka has lost records: {RECREATED}/")
    # Dead letters begin again.
    log.wait_for(f"query {dead_letter_topic(RECREATED)} starts at the first event again")

    waiting[BUSY].append()
    waiting[BUSY].wait_until_folded()
    waiting[BUSY].assert_folded_once(repeated)
