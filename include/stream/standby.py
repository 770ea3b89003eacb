"""The turn of a standby driver: it is ready to fold, and waits until the present driver has ended."""

import logging
import os
import time
from pathlib import Path

LOG = logging.getLogger(__name__)

# Variable with the path of the file that appears when the standby driver has the lock. Unset: the driver has the lock already.
TURN_FILE = "STREAM_TURN_FILE"
POLL_INTERVAL_S = 0.02
# What a standby driver writes to the log when it is ready.
READY = "standby: ready"


def is_standby() -> bool:
    """Whether this driver waits for its turn."""
    return _turn_file() is not None


def wait_for_turn() -> None:
    """Wait until this driver has the lock; returns at once unless it is a standby."""
    turn = _turn_file()
    if turn is None:
        return
    LOG.info("%s, waiting until the stream driver ends", READY)
    while not turn.exists():
        time.sleep(POLL_INTERVAL_S)
    os.environ.pop(TURN_FILE, None)
    LOG.info("standby: taking over")


def _turn_file() -> Path | None:
    path = os.environ.get(TURN_FILE)
    return Path(path) if path else None
