"""Each stage of a rebuild is killed five times: readers see either the old or the new version, and nothing is left behind."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal

import pytest

from include.airflow.client import airflow_api
from include.airflow.names import RETIREMENT_DAG
from include.read_models.balance.events import FundsAdded
from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions, Stage
from tests.support.lake.stage_processes import StageProcesses
from tests.support.rebuild.rebuild_readers import Readers
from tests.support.repetition import repeated
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

MODEL = "balance"
KEYS = [f"rebuilt-{number}" for number in range(20)]
CENTS = 125
TIMEOUT_S = 240.0
# Python takes half a second to start; the rest of a stage finishes within two seconds.
QUICK_KILLS_S = (0.2, 0.8, 1.1, 1.4, 2.0)
# Spark's session is up after about ten seconds.
SPARK_KILLS_S = (2.0, 9.0, 12.0, 15.0, 18.0)


def record(settings: Settings) -> ReadModelVersions:
    registry = VersionRegistry(settings.kafka_connection)
    found = registry.read()[MODEL]
    registry.close()
    return found


def stage_of(settings: Settings, number: int) -> Stage | None:
    version = record(settings).version(number)
    return None if version is None else version.stage


class Stages(StageProcesses):
    """Starts the stages of a rebuild, and kills them."""

    def kill_then_finish(self, kind: str, name: str, *arguments: str, kills_s: tuple[float, ...]) -> None:
        """Start a stage and kill it after each of these times; then start it once more and let it finish."""
        start = getattr(self, kind)
        for after_s in kills_s:
            process: subprocess.Popen[bytes] = start(name, *arguments)
            with suppress(subprocess.TimeoutExpired):
                process.wait(after_s)
            process.kill()
            process.wait(30)
        assert start(name, *arguments).wait(TIMEOUT_S) == 0, f"{name}: see {self.log.name}"


@pytest.fixture
def stages(full_stack: Settings) -> Iterator[Stages]:
    """The stages of a rebuild, with a shared log."""
    with (full_stack.home / "logs" / "killed-stages.log").open("ab") as log:
        yield Stages(full_stack, MODEL, log)


@pytest.fixture(scope="module")
def source(full_stack: Settings) -> Iterator[EventSource]:
    """Append events to some keys continuously, with the retirement DAG paused, which would abandon a version without a run."""
    source = EventSource(full_stack, MODEL)
    wait_until(lambda: MODEL in VersionRegistry(full_stack.kafka_connection).read(), "version 1", TIMEOUT_S)
    api = airflow_api(full_stack.home, full_stack.airflow)
    api.set_paused(RETIREMENT_DAG, paused=True)

    def produce() -> None:
        source.append(FundsAdded(customerId=key, amount=Decimal(CENTS) / 100) for key in KEYS)

    try:
        with repeated(produce, pause_s=0.1):
            yield source
    finally:
        api.set_paused(RETIREMENT_DAG, paused=False)


@contextmanager
def readers(settings: Settings) -> Iterator[Readers]:
    """Query both nodes continuously; fail at the end if any answer was wrong."""
    with Readers(settings.query_ports, MODEL, KEYS, CENTS) as active_readers:
        wait_until(lambda: active_readers.versions or active_readers.faults, "the first answers")
        yield active_readers
    assert active_readers.faults == []


def next_number(settings: Settings) -> int:
    return max(version.number for version in record(settings).versions) + 1


def wait_for_keys(settings: Settings) -> None:
    """Wait until each key has its first record."""

    def answered() -> bool:
        with Readers(settings.query_ports, MODEL, KEYS, CENTS) as active_readers:
            wait_until(
                lambda: sum(active_readers.versions.values()) + len(active_readers.faults) > 2 * len(KEYS),
                "every key is read",
            )
        return not active_readers.faults

    wait_until(answered, "all keys are folded", TIMEOUT_S)


def test_rebuild_with_every_stage_killed_is_promoted_and_rolled_back(
    full_stack: Settings, source: EventSource, stages: Stages
) -> None:
    assert source.topic == MODEL
    wait_for_keys(full_stack)
    number = next_number(full_stack)
    live = record(full_stack).live
    assert live is not None
    version = ("--version", str(number))
    check = ("--stores", "changelog,staging", "--mode", "full", "--run-id", f"killed-v{number}")
    with readers(full_stack) as active_readers:
        stages.kill_then_finish(
            "action",
            "register_candidate",
            *("--run-id", f"killed-{number}", "--reason", "to be killed"),
            kills_s=QUICK_KILLS_S,
        )
        assert next_number(full_stack) == number + 1, "repeated attempts register only one version"
        stages.kill_then_finish("stream_job", "catch_up", *version, kills_s=SPARK_KILLS_S)
        stages.kill_then_finish("lake_job", "build_staging", *version, kills_s=SPARK_KILLS_S)
        stages.kill_then_finish("lake_job", "quality_check", *version, *check, kills_s=SPARK_KILLS_S)
        compare = (*version, "--run-id", f"killed-v{number}")
        stages.kill_then_finish("lake_job", "compare_versions", *compare, kills_s=SPARK_KILLS_S)
        stages.kill_then_finish("action", "hand_over", *version, kills_s=QUICK_KILLS_S)
        stages.kill_then_finish("action", "hydrate", *version, kills_s=QUICK_KILLS_S)
        assert set(active_readers.versions) == {live.number}, "no reader has seen the candidate"
        stages.kill_then_finish("action", "promote", *version, "--grace-hours", "1", kills_s=QUICK_KILLS_S)
        wait_until(lambda: active_readers.versions[number] > 0, "readers get the new version", timeout_s=10)
        stages.kill_then_finish("lake_job", "promote_lake", kills_s=SPARK_KILLS_S)
        stages.kill_then_finish("action", "roll_back", "--version", str(live.number), kills_s=QUICK_KILLS_S)
        before = active_readers.versions[live.number]
        wait_until(
            lambda: active_readers.versions[live.number] > before + 50, "readers get the old version back", 20
        )
        stages.kill_then_finish("action", "retire", *version, kills_s=QUICK_KILLS_S)
        assert set(active_readers.versions) == {live.number, number}
    assert stage_of(full_stack, number) is Stage.RETIRED
    assert_nothing_left(full_stack, number)


def test_abandoned_rebuild_leaves_nothing_however_often_the_cleanup_is_killed(
    full_stack: Settings, source: EventSource, stages: Stages
) -> None:
    assert source.topic == MODEL
    number = next_number(full_stack)
    version = ("--version", str(number))
    with readers(full_stack) as active_readers:
        registration = stages.action(
            "register_candidate", "--run-id", f"abandoned-{number}", "--reason", "to be abandoned"
        )
        assert registration.wait(TIMEOUT_S) == 0
        # Without a catch-up, the stream driver folds the version from the first event.
        assert stages.action("hand_over", *version).wait(TIMEOUT_S) == 0
        stages.kill_then_finish("action", "abandon", *version, kills_s=QUICK_KILLS_S)
        assert stages.action("promote", *version).wait(TIMEOUT_S) == 1, (
            "an abandoned version cannot be promoted"
        )
        assert number not in active_readers.versions
    assert stage_of(full_stack, number) is Stage.ABANDONED
    assert_nothing_left(full_stack, number)


def assert_nothing_left(settings: Settings, number: int) -> None:
    assert find_leftovers(settings, MODEL, number) == []
    stores = [settings.home / "nodes" / f"node-{node}" for node in (1, 2)]
    wait_until(
        lambda: not any(path for store in stores for path in store.glob(f"**/*v{number}*")),
        "both nodes have removed their stores",
    )
