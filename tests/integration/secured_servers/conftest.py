"""A broker that requires authentication, and what its clients authenticate with."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import SecuredBroker, secured_broker
from tests.support.security.token_server import TokenServer, token_server
from tests.support.temporary_stack import temporary_home, temporary_settings

CLIENT_SECRET = "Zw3-client-word"  # noqa: S105 - of a server of these tests
PLAIN_PASSWORD = "Zw3-plain-word"  # noqa: S105 - the same


@pytest.fixture(scope="package")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Issues the certificates of all servers and clients."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="package")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    """Issues tokens for the client `foldlake`."""
    with token_server(tmp_path_factory.mktemp("tokens") / "keys.json", "foldlake", CLIENT_SECRET) as server:
        yield server


@pytest.fixture(scope="package")
def broker(
    authority: Authority, tokens: TokenServer, keep_home: Callable[[], bool]
) -> Iterator[SecuredBroker]:
    """The broker, in which the users of the tests have the rights that Foldlake needs."""
    with (
        temporary_home(keep_home) as home,
        secured_broker(
            temporary_settings(home), authority, tokens.key_file, ("foldlake", PLAIN_PASSWORD)
        ) as running,
    ):
        running.grant("foldlake")
        running.grant(authority.principal("foldlake"))
        running.grant("scram")
        yield running
