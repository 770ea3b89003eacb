"""A stack for tests that run stream drivers of their own."""

from collections.abc import Iterator

import pytest

from include.settings import Settings
from tests.support.stream_process import make_topics
from tests.support.temporary_stack import temporary_stack


@pytest.fixture(scope="package")
def stream_stack(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Kafka and the schema registry once more, for tests that run stream drivers of their own on them, one at a time."""
    session = request.session
    with temporary_stack(
        ("kafka", "registry"),
        keep_home=lambda: session.testsfailed > 0,
        stream_real_time_interval_s=10,
        stream_catch_up_threshold_events=5_000,
        stream_catch_up_batch_events=4_000,
        stream_spare_queries=0,
    ) as running:
        make_topics(running, "balance")
        yield running
