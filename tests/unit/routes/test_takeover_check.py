"""What is known of a take-over is kept by the stream's context, for as long as the version stays live."""

from pathlib import Path
from typing import cast

import pytest

from include.declarations.kinds.emission import Emission
from include.settings import Settings
from include.versions.version_record import Stage, Version
from spark_jobs.routing.topic_switch import TakeoverState
from spark_jobs.streaming.outputs.takeover_check import TakeoverCheck
from spark_jobs.streaming.query_spec import StartPostponedError
from spark_jobs.streaming.stream_context import StreamContext

EMISSION = Emission("totals", "balance", "totals", "Total", {})


class Context:
    """The part of a stream's context that a check needs before it reads a topic."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings.of(home=home)
        self.takeovers: dict[str, TakeoverState] = {}


class Check(TakeoverCheck):
    """A check whose steps are done or not."""

    def __init__(self, context: Context, live_since: str, *, is_done: bool) -> None:
        version = Version(
            2, Stage.LIVE, 1, "balance.v2.changelog", "a test", live_since, live_since=live_since
        )
        super().__init__(cast("StreamContext", context), EMISSION, version, "balance.v2")
        self._is_done = is_done

    def _advance(self) -> bool:
        return self._is_done


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A context that knows of no take-over."""
    return Context(tmp_path)


def test_a_complete_check_stays_complete_while_the_version_is_live(context: Context) -> None:
    assert not Check(context, "monday", is_done=False).is_complete()
    assert Check(context, "monday", is_done=True).is_complete()
    assert Check(context, "monday", is_done=False).is_complete()


def test_a_version_that_becomes_live_again_is_checked_again(context: Context) -> None:
    assert Check(context, "monday", is_done=True).is_complete()
    assert not Check(context, "tuesday", is_done=False).is_complete()


def test_another_context_knows_nothing(context: Context, tmp_path: Path) -> None:
    assert Check(context, "monday", is_done=True).is_complete()
    assert not Check(Context(tmp_path), "monday", is_done=False).is_complete()


def test_a_handover_from_another_topic_is_checked_again(context: Context) -> None:
    check = Check(context, "monday", is_done=True)
    assert check.is_complete()
    with pytest.raises(StartPostponedError):
        check.change_from("balance")
    assert not Check(context, "monday", is_done=False).is_complete()
