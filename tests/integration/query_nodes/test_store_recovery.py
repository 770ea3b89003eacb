"""A node recovers without an operator from damage to its store and from kills of its writer; balances are exact again."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from query_api.store.stored_form import HEADER_BYTES
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

PAGE_BYTES = 4096


def delete(store: Path) -> None:
    shutil.rmtree(store)


def truncate(store: Path) -> None:
    os.truncate(store / "data.mdb", 5 * PAGE_BYTES)


def overwrite(store: Path) -> None:
    size = (store / "data.mdb").stat().st_size
    with (store / "data.mdb").open("r+b") as file:
        file.seek(2 * PAGE_BYTES)  # both meta pages stay intact: the store opens, but its trees are corrupt
        file.write(os.urandom(size - 2 * PAGE_BYTES))


def scratch(store: Path, customer: str) -> None:
    """Change a byte in every copy of a customer's record, including copies on unused pages."""
    content = (store / "data.mdb").read_bytes()
    record_start = customer.encode()
    with (store / "data.mdb").open("r+b") as file:
        at = content.find(record_start)
        while at >= 0:
            file.seek(at + len(record_start) + HEADER_BYTES + 1)
            file.write(b"\xff")
            at = content.find(record_start, at + 1)


def unknown_key_answers(failures: list[str]) -> list[str]:
    """Return the lookups that were answered with 404, without other failures while a node was down."""
    return [failure for failure in failures if ": 404 " in failure]


@contextmanager
def is_rebuilt(nodes: NodeStack, node: str) -> Iterator[None]:
    """Wait at the end until a node has replaced its store."""
    path = nodes.store(node) / "data.mdb"
    with path.open("rb") as before:  # while it is open, no other file can get its inode

        def is_replaced() -> bool:
            try:
                return not os.path.samestat(path.stat(), os.fstat(before.fileno()))
            except FileNotFoundError:
                return False

        yield
        wait_until(is_replaced, "the store is replaced")


def test_materializer_killed_under_writes_resumes_from_its_stored_offsets(nodes: NodeStack) -> None:
    inode = (nodes.store("node-1") / "data.mdb").stat().st_ino
    for customer in list(nodes.expected)[:100]:
        nodes.put(customer, nodes.expected[customer] + Decimal("0.01"))

    nodes.kill("node-1-materializer")
    nodes.put("customer 3/é", Decimal("77.00"))
    nodes.writer.flush()

    nodes.wait_until_exact()
    assert (nodes.store("node-1") / "data.mdb").stat().st_ino == inode, "the store was kept"


@pytest.mark.parametrize("damage", [delete, truncate, overwrite])
def test_store_damaged_while_its_node_is_down_is_rebuilt(
    nodes: NodeStack, damage: Callable[[Path], None]
) -> None:
    with nodes.continuous_lookups() as failures, is_rebuilt(nodes, "node-1"):
        os.kill(nodes.pid("node-1-materializer"), 9)
        damage(nodes.store("node-1"))
    nodes.wait_until_exact()
    assert unknown_key_answers(failures) == []


def test_store_deleted_under_a_running_node_is_rebuilt(nodes: NodeStack) -> None:
    with nodes.continuous_lookups() as failures, is_rebuilt(nodes, "node-2"):
        shutil.rmtree(nodes.store("node-2"))
    nodes.wait_until_exact()
    assert unknown_key_answers(failures) == []


def test_record_damaged_under_a_running_node_is_never_answered(nodes: NodeStack) -> None:
    wait_until(
        lambda: nodes.balance(nodes.ports[0], "customer 7/é").headers["Foldlake-Role"] == "owner",
        "the owner answers",
    )
    owner = nodes.balance(nodes.ports[0], "customer 7/é").headers["Foldlake-Node"]

    with is_rebuilt(nodes, owner):
        scratch(nodes.store(owner), "customer 7/é")
        answers = {nodes.balance(port, "customer 7/é").text for port in nodes.ports}

        assert answers == {f'{{"amount":{nodes.expected["customer 7/é"]}}}'}, "the standby answers"
    nodes.wait_until_exact()


def test_record_damaged_while_its_node_is_down_is_found_without_a_lookup(nodes: NodeStack) -> None:
    with is_rebuilt(nodes, "node-1"):
        os.kill(nodes.pid("node-1-materializer"), 9)
        scratch(nodes.store("node-1"), "customer 9/é")
    nodes.wait_until_exact()


def test_record_with_fewer_events_is_ignored(nodes: NodeStack) -> None:
    nodes.put("replayed", Decimal("1.00"))
    nodes.put("replayed", Decimal("2.00"))
    nodes.writer.write("replayed", Decimal("1.00"), event_count=1, source_offset=1)
    nodes.put("after replayed", Decimal("9.00"))
    nodes.writer.flush()

    wait_until(lambda: _lag(nodes) == 0, "the changelog is read to its end")
    nodes.wait_until_exact()
    assert nodes.balance(nodes.ports[0], "replayed").text == '{"amount":2.00}'


def test_deleted_key_is_unknown(nodes: NodeStack) -> None:
    nodes.writer.write("short-lived", Decimal("1.00"))
    nodes.writer.flush()
    wait_until(lambda: nodes.balance(nodes.ports[0], "short-lived").status_code == 200, "the key exists")

    nodes.writer.write_raw(b"short-lived", None)
    nodes.writer.flush()

    wait_until(
        lambda: {nodes.balance(p, "short-lived").status_code for p in nodes.ports} == {404}, "the key is gone"
    )


def test_bad_changelog_records_are_skipped_and_counted(nodes: NodeStack) -> None:
    good = nodes.writer.value("x", Decimal("1.00"), 1, 1)
    bad: list[tuple[bytes, bytes]] = [
        (b"bad", b""),
        (b"bad", b"\x07garbage"),
        (b"bad", b"\x00\x00\x0f\xff\xff" + good[5:]),
        (b"bad", good[:9]),
        (b"k" * 512, good),
    ]

    for key, value in bad:
        nodes.writer.write_raw(key, value)
    nodes.put("after the bad ones", Decimal("4.00"))
    nodes.writer.flush()

    nodes.wait_until_exact()
    wait_until(lambda: _bad_records(nodes) >= len(bad), "they are counted", 10)


def _lag(nodes: NodeStack) -> int:
    reports = nodes.get(nodes.ports[0], "/api/partitions").json()
    return sum(report["lagRecords"] for report in reports)


def _bad_records(nodes: NodeStack) -> float:
    lines = [line for port in nodes.ports for line in nodes.get(port, "/metrics").text.splitlines()]
    return max(
        float(line.rpartition(" ")[2]) for line in lines if line.startswith("foldlake_bad_changelog_records{")
    )
