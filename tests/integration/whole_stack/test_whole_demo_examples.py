"""The examples of the pages with the mark `<!-- examples: run on demo -->`, as a reader runs them, on the stack after `./foldlake demo`.

Sorted behind the module that runs the demo.
"""

import pytest
from confluent_kafka import Producer

from include.settings import Settings
from tests.integration.whole_stack.test_whole_demo import command
from tests.support.documentation.page_blocks import Block, blocks_run
from tests.support.documentation.page_follower import PageFollower


@pytest.fixture(scope="module")
def with_lake(full_stack: Settings) -> Settings:
    """The stack, with dead letters, and with the events of the demo in the lake."""
    producer = Producer({**full_stack.kafka_connection.client_settings, "partitioner": "murmur2_random"})
    for value in (b"not an event", None):
        producer.produce("balance", key="you", value=value)
    producer.flush()
    done = command(full_stack, "compact", timeout_s=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return full_stack


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory, with_lake: Settings) -> PageFollower:
    """Return a reader with a folder like a checkout."""
    return PageFollower(tmp_path_factory.mktemp("checkout"), with_lake)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", blocks_run("demo"), ids=lambda block: block.place)
def test_an_example_works_as_it_is_written(follower: PageFollower, block: Block) -> None:
    follower.follow(block)
