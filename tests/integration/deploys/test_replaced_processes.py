"""Processes whose definition has changed are replaced one unit after the other, and the next ones are kept if one does not start.

A server whose sockets are held is replaced by one that gets ready first.
"""

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from include.settings import Settings
from stack.lifecycle import start, stop
from stack.plan import KEEP, REPLACE, plan
from stack.readiness import StartError
from stack.supervision.configuration import held_files
from stack.supervision.supervisor import Supervisor
from tests.support import dummy_servers
from tests.support.dummy_servers import BROKEN, HELD, NAMES, SLOW, command_line, is_replaced, pid
from tests.support.http.held_server import response
from tests.support.waiting import wait_until


def test_changed_processes_are_replaced_one_unit_after_the_other(dummies: Settings) -> None:
    kafka, registry = pid(dummies, "kafka"), pid(dummies, "registry")
    dummy_servers.hold_back(dummies)

    changed = dummies.changed(kafka_heap_mb=400, partitions=3)
    with command_line(changed, "up", "--only", "kafka,registry") as up:
        try:
            wait_until(
                lambda: Supervisor(dummies).states()["kafka"].pid not in {None, kafka}, "kafka is replaced"
            )
            assert pid(dummies, "registry") == registry
            dummy_servers.release(dummies)
            assert up.wait(30) == 0
        finally:
            up.kill()

    assert pid(dummies, "registry") != registry


def test_the_next_unit_is_kept_if_a_process_does_not_start(dummies: Settings) -> None:
    registry = pid(dummies, "registry")
    with socket.socket() as taken:
        # Not listening, or the process would be taken for ready.
        taken.bind(("127.0.0.1", 0))
        changed = dummies.changed(kafka_port=taken.getsockname()[1], partitions=3)

        with pytest.raises(StartError, match="kafka ended 4 times"):
            start(changed, NAMES)

        assert pid(dummies, "registry") == registry

    # With the definition before, which supervisord still has.
    os.kill(registry, signal.SIGKILL)
    wait_until(lambda: is_replaced(dummies, "registry", registry), "the registry is restarted")


@pytest.fixture
def held(dummies_home: Settings) -> Settings:
    """A stack with a server whose sockets are held, and which responds with the name `old`."""
    settings = dummies_home.changed(node_name="old")
    start(settings, [HELD.name])
    return settings


def name_of(settings: Settings) -> str:
    return response(settings.query_ports[0])


def action(settings: Settings) -> str:
    (planned,) = plan(settings, [HELD.name])
    return planned.action


def test_a_server_whose_sockets_are_held_is_replaced_and_its_holder_stays(held: Settings) -> None:
    holder, changed = pid(held, HELD.name), held.changed(node_name="new")
    assert (action(held), action(changed)) == (KEEP, REPLACE)

    start(changed, [HELD.name])

    assert name_of(held) == "new"
    assert (action(held), action(changed)) == (REPLACE, KEEP)
    assert pid(held, HELD.name) == holder
    os.kill(holder, signal.SIGKILL)
    wait_until(lambda: is_replaced(held, HELD.name, holder), "it is restarted")
    assert name_of(held) == "new"


def test_a_release_with_tools_of_its_own_keeps_the_holder(held: Settings, tmp_path: Path) -> None:
    (tmp_path / "tools").symlink_to(held.tools)
    holder, other = pid(held, HELD.name), held.changed(node_name="new", tools=tmp_path / "tools")

    start(other, [HELD.name])
    (tmp_path / "tools").unlink()

    assert name_of(held) == "new"
    assert pid(held, HELD.name) == holder
    start(held, [HELD.name])
    assert name_of(held) == "old"
    os.kill(holder, signal.SIGKILL)
    wait_until(lambda: is_replaced(held, HELD.name, holder), "it is restarted")


def test_other_sockets_need_another_holder(held: Settings) -> None:
    changed = held.changed(query_ports=(*held.query_ports[::-1],))
    holder = pid(held, HELD.name)

    start(changed, [HELD.name])

    assert name_of(changed) == "old"
    assert pid(held, HELD.name) != holder


def test_a_new_server_that_fails_leaves_the_present_one_until_the_next_start(held: Settings) -> None:
    holder, broken = pid(held, HELD.name), held.changed(node_name=BROKEN)

    for _ in range(2):
        with pytest.raises(StartError, match="it ended with status 3"):
            start(broken, [HELD.name])
        assert name_of(held) == "old"
        assert action(broken) == REPLACE

    # With the description before.
    os.kill(holder, signal.SIGKILL)
    wait_until(lambda: is_replaced(held, HELD.name, holder), "it is restarted")
    assert name_of(held) == "old"
    start(held.changed(node_name="new"), [HELD.name])
    assert name_of(held) == "new"


def test_the_next_start_goes_on_after_one_that_was_killed(held: Settings) -> None:
    slow, files = held.changed(node_name=SLOW), held_files(held.home, HELD.name)
    with command_line(slow, "up", "--only", HELD.name) as up:
        wait_until(lambda: files.pending() is not None, "another server is requested")
        up.kill()

    # Back to what runs.
    assert name_of(held) == "old"
    start(held, [HELD.name])
    assert files.pending() is None
    assert name_of(held) == "old"

    new = held.changed(node_name="new")
    with command_line(new, "up", "--only", HELD.name) as up:
        wait_until(lambda: files.pending() is not None, "another server is requested")
        up.kill()
    start(new, [HELD.name])
    assert name_of(held) == "new"


def test_a_stop_during_a_replacement_ends_both_servers(held: Settings) -> None:
    holder = psutil.Process(pid(held, HELD.name))
    with command_line(held.changed(node_name=SLOW), "up", "--only", HELD.name) as up:
        wait_until(lambda: len(holder.children()) == 2, "the new server starts")
        up.kill()
    servers = holder.children()

    assert stop(held) == 0

    assert psutil.wait_procs([holder, *servers], timeout=30)[1] == []
