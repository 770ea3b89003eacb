"""docs/how-to/backup.md: the restore drill. A machine is lost, and its backup is restored on an empty one."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from stack.lifecycle import start, stop
from stack.stack_guard import guarded
from tests.integration.releases.hosts import this_release
from tests.support.http.local_http import http_client
from tests.support.stream_process import EventSource
from tests.support.temporary_stack import temporary_home, temporary_settings, temporary_stack
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.endurance, pytest.mark.timeout(2400)]

MODEL = "balance"
CUSTOMERS, EVENTS_EACH = 2_000, 25
FOLD_S = 600.0
# What docs/how-to/backup.md tells to copy.
FOLDERS = ("kafka", "registry")
SOURCE_TOPICS = {"balance", "balance.dead-letter"}


@dataclass(frozen=True)
class Backup:
    """The copied folders, and the balances that were known when they were copied."""

    folder: Path
    balances: dict[str, Decimal]


@pytest.fixture(scope="module")
def backup(keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory) -> Backup:
    """A backup of a stack that has been lost since."""
    folder = tmp_path_factory.mktemp("backup")
    with temporary_stack(keep_home=keep_home, compaction_interval_s=0) as settings:
        balances = {
            f"customer-{number}": Decimal(number % 97 + 1) / 100 * EVENTS_EACH for number in range(CUSTOMERS)
        }
        source = EventSource(settings, MODEL)
        for _ in range(EVENTS_EACH):
            source.append(
                FundsAdded(customerId=key, amount=total / EVENTS_EACH) for key, total in balances.items()
            )
        wait_until(lambda: is_exact(settings, balances), "every balance is exact", FOLD_S, 1.0)
        stop(settings)
        for name in FOLDERS:
            shutil.copytree(settings.home / name, folder / name)
    return Backup(folder, balances)


@pytest.fixture
def empty_machine(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home in which nothing is, with ports of its own."""
    with temporary_home(keep_home) as home:
        settings = temporary_settings(home, compaction_interval_s=0)
        with guarded(settings):
            yield settings


def is_exact(settings: Settings, balances: dict[str, Decimal]) -> bool:
    """Whether both nodes answer with each of these balances."""
    with http_client(keep_alive=True) as client:
        for port in settings.query_ports:
            for key, total in balances.items():
                answer = client.get(
                    f"http://127.0.0.1:{port}/api/customers.getBalance", params={"customerId": key}
                )
                if answer.status_code != httpx.codes.OK or answer.text != f'{{"amount":{total:.2f}}}':
                    return False
    return True


def keep_only_sources(settings: Settings) -> None:
    """Delete all that can be derived from the events, as if only the source topics had been mirrored."""
    start(settings, ("kafka", "registry"))
    admin = AdminClient(settings.kafka_connection.client_settings)

    def derived() -> list[str]:
        topics = admin.list_topics(timeout=10).topics
        return [name for name in topics if not name.startswith("__") and name not in SOURCE_TOPICS]

    for deleted in admin.delete_topics(derived(), operation_timeout=30).values():
        deleted.result()
    wait_until(lambda: not derived(), "only the source topics are left")


@pytest.mark.parametrize("restored", ["everything", "sources"])
def test_a_lost_machine_is_restored_exactly(empty_machine: Settings, backup: Backup, restored: str) -> None:
    release = this_release(empty_machine)
    started_s = time.monotonic()
    for name in FOLDERS:
        shutil.copytree(backup.folder / name, empty_machine.home / name)
    if restored == "sources":
        keep_only_sources(empty_machine)

    start(empty_machine)

    up_s = time.monotonic() - started_s
    wait_until(lambda: is_exact(empty_machine, backup.balances), "every balance is exact", FOLD_S, 1.0)
    exact_s = time.monotonic() - started_s
    release.run(empty_machine, "compact", MODEL)
    release.run(empty_machine, "quality", MODEL)
    log.info(
        "%s: up after %.0f s, every balance exact after %.0f s, lake and check after %.0f s",
        restored,
        up_s,
        exact_s,
        time.monotonic() - started_s,
    )
    customer = next(iter(backup.balances))
    EventSource(empty_machine, MODEL).append([FundsAdded(customerId=customer, amount=Decimal("1.00"))])
    expected = {customer: backup.balances[customer] + 1}
    wait_until(lambda: is_exact(empty_machine, expected), "an event after it is folded", FOLD_S)
