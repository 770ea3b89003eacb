"""The examples of the pages with the mark `<!-- examples: run on demo -->`, as a reader runs them, on the stack after `./foldlake demo`.

Sorted behind the module that runs the demo.
"""

import pytest

from include.settings import Settings
from tests.support.documentation.page_blocks import Block, blocks_run
from tests.support.documentation.page_follower import PageFollower


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory, full_stack: Settings) -> PageFollower:
    """Return a reader with a folder like a checkout."""
    return PageFollower(tmp_path_factory.mktemp("checkout"), full_stack)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", blocks_run("demo"), ids=lambda block: block.place)
def test_an_example_works_as_it_is_written(follower: PageFollower, block: Block) -> None:
    follower.follow(block)
