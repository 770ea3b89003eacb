"""Two nodes with a read model of so many items, under one placement."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

from valkey import Valkey

from benchmarks.placements.whole_model import number_of_items
from benchmarks.support.report import cpu_s
from include.settings import Placement, Settings
from query_api.store.backends import load_backend
from stack.lifecycle import start
from stack.supervision.supervisor import Supervisor
from tests.support.changelog_writer import ChangelogWriter
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

READY_TIMEOUT_S = 300.0
POLL_S = 0.1


@dataclass
class Items:
    """Running nodes. expected: key -> balance, as both answer it. loaded_s: from the nodes' start until both had everything."""

    settings: Settings
    writer: ChangelogWriter
    placement: Placement
    expected: dict[str, str]
    loaded_s: float

    def cpu_s(self) -> float:
        """Return the processor time of the nodes and of Redis up to now, in seconds."""
        states = Supervisor(self.settings).states()
        return sum(cpu_s(state.pid) for state in states.values() if state.pid is not None)

    def memory(self) -> str:
        """Return what the records take."""
        if self.placement is Placement.REDIS:
            used = Valkey(port=self.settings.redis.port).info("memory")["used_memory"]  # type: ignore[index]  # no coroutine
            return f"{used / 2**20:.1f} MB in Redis"
        backend, size = load_backend(self.settings), 0
        for store in (self.settings.home / "nodes").glob("*/balance.v1"):
            size += backend.open_reader(store, self.settings.topics.partitions).size_bytes()
        return f"{size / 2**20:.1f} MB in the stores of both nodes"


@contextmanager
def items_on_two_nodes(servers: Settings, placement: Placement, number: int) -> Iterator[Items]:
    """Write so many items to a changelog, start two nodes, and yield them once both have everything."""
    with sharing_servers(servers, placements=(f"balance={placement}",)) as settings:
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        expected = {f"item-{n}": f"{n // 100}.{n % 100:02d}" for n in range(number)}
        for offset, (key, amount) in enumerate(expected.items()):
            writer.write(key, Decimal(amount), 1, offset)
        writer.flush()
        start(settings, ("redis",))
        began = time.perf_counter()
        start(settings, ("query_nodes",))
        wait_until(
            lambda: all(number_of_items(port) == number for port in settings.query_ports),
            f"both nodes have {number:,} items",
            READY_TIMEOUT_S,
            POLL_S,
        )
        yield Items(settings, writer, placement, expected, time.perf_counter() - began)
