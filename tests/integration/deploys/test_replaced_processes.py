"""Processes whose definition has changed are replaced one unit after the other, and the next ones are kept if one does not start."""

import os
import signal
import socket

import pytest

from include.settings import Settings
from stack.lifecycle import start
from stack.readiness import StartError
from stack.supervision.supervisor import Supervisor
from tests.support import dummy_servers
from tests.support.dummy_servers import NAMES, command_line, is_replaced, pid
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
