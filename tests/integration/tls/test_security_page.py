"""The examples of the pages with the mark `<!-- examples: run on secured -->`, on two nodes that require keys and have the certificate of docs/security.md."""

from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from include.nodes.certificates import create
from include.nodes.peer_tls import certificate_path, key_path
from include.settings import Settings
from stack.lifecycle import start
from tests.support.changelog_writer import ChangelogWriter
from tests.support.documentation.page_blocks import Block, blocks_run
from tests.support.documentation.page_follower import PageFollower
from tests.support.temporary_stack import first_of_free_ports, sharing_servers

# Names on the page.
CALLERS = "callers"
CUSTOMER = "7"


@pytest.fixture(scope="module")
def follower(
    servers: Settings, keep_home: Callable[[], bool], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PageFollower]:
    """Return a reader with a folder like a checkout, after the step that starts the stack."""
    with sharing_servers(
        servers, keep_home, auth="keys", node_peer_port=first_of_free_ports(2)
    ) as without_tls:
        home = without_tls.home
        # The page's first step replaces it.
        create(home, {CALLERS: "127.0.0.1"})
        settings = without_tls.changed(
            tls_cert_file=certificate_path(home, CALLERS), tls_key_file=key_path(home, CALLERS)
        )
        start(settings, ("query_nodes",))
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        writer.write(CUSTOMER, Decimal("152.50"))
        writer.flush()
        yield PageFollower(tmp_path_factory.mktemp("checkout"), settings)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", blocks_run("secured"), ids=lambda block: block.place)
def test_an_example_works_as_it_is_written(follower: PageFollower, block: Block) -> None:
    follower.follow(block)
