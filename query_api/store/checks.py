"""The check of a store: how much it reads, and what it finds."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class CheckExtent(StrEnum):
    """How much of a store a check reads.

    OPENING: a bounded part, without which the store cannot be opened; takes a moment, whatever the store's size.
    EVERYTHING: every record of a store that no process writes.
    IN_USE: every record while a process writes the store; at low priority.
    """

    OPENING = "opening"
    EVERYTHING = "everything"
    IN_USE = "in-use"


class StoreCheck(Protocol):
    """A check of a store that has begun, and goes on beside the caller until it is over or stopped."""

    @property
    def progress(self) -> str:
        """How many records were read; empty before the first ones."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until the check is over, and return whether it is."""

    def finding(self) -> str | None:
        """Return why the store cannot be used, or None, after waiting until the check is over.

        Raises StoreWriteError when the store could not be checked, which says nothing about its content.
        """

    def stop(self) -> None:
        """End the check without a result; does nothing when it is over."""


@dataclass(frozen=True)
class FinishedCheck:
    """A StoreCheck that was over at once. reason: why the store cannot be used; None if it can."""

    reason: str | None = None
    progress: str = ""

    def wait(self, timeout_s: float) -> bool:  # noqa: ARG002 - there is nothing to wait for
        """Return that the check is over."""
        return True

    def finding(self) -> str | None:
        """Return the reason."""
        return self.reason

    def stop(self) -> None:
        """Do nothing."""
