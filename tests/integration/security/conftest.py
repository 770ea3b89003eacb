"""Two query nodes that demand an API key or a token, over a changelog that the tests write, and the issuer of the tokens."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest

from include.access.audit import AuditLog
from include.access.caller import parse_scopes
from include.access.key_changes import KeyChanges
from include.access.key_topic import KeyTopic
from include.settings import Settings
from stack.lifecycle import start
from tests.support.access.tokens import AUDIENCE, ISSUER, Issuer, serving
from tests.support.changelog_writer import ChangelogWriter
from tests.support.http.local_http import http_client
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

LOOKUP = "/api/customers.getBalance?customerId=alice"
BALANCE = '{"amount":5.00}'


@dataclass
class SecuredNodes:
    """The nodes, the issuer of tokens, and the changes of keys."""

    settings: Settings
    issuer: Issuer
    keys: KeyChanges

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of the nodes."""
        return self.settings.query_ports

    def key(
        self, name: str, scopes: str = "read", read_models: tuple[str, ...] = (), expires_in_s: float = 0
    ) -> str:
        """Create a key, and return its secret once all nodes know it."""
        now = datetime.now(UTC)
        until = now + timedelta(seconds=expires_in_s) if expires_in_s else None
        _, secret = self.keys.create(name, parse_scopes(scopes), frozenset(read_models) or None, until, now)
        wait_until(
            lambda: all(self.get(port, "/unknown", secret).status_code != 401 for port in self.ports),
            "all nodes know the key",
            10,
        )
        return secret

    def get(self, port: int, path: str, secret: str = "", **headers: str) -> httpx.Response:
        """Query a node."""
        authorization = {"Authorization": f"Bearer {secret}"} if secret else {}
        with closing(http_client()) as client:
            return client.get(f"http://127.0.0.1:{port}{path}", headers=authorization | headers)

    def statuses(self, secret: str, path: str = LOOKUP) -> set[int]:
        """Return the statuses with which the nodes answer."""
        return {self.get(port, path, secret).status_code for port in self.ports}


@pytest.fixture(scope="package")
def secured(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[SecuredNodes]:
    """Two nodes; each has all balances, so that none asks the other one."""
    with (
        serving(Issuer()) as issuer,
        sharing_servers(
            servers,
            keep_home,
            auth="keys,jwt",
            jwt_issuer=ISSUER,
            jwt_audience=AUDIENCE,
            jwt_jwks_url=issuer.url,
            placements="balance=replicated",
        ) as settings,
    ):
        start(settings, ("query_nodes",))
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        writer.write("alice", Decimal("5.00"), 1, 1)
        writer.flush()
        topic = KeyTopic(settings.kafka_connection, settings.topics.replication_factor)
        nodes = SecuredNodes(settings, issuer, KeyChanges(topic, AuditLog(settings.home), "user:tests"))
        wait_until(lambda: nodes.statuses("", "/readyz") == {200}, "both nodes are ready", 120)
        operator = nodes.key("first")
        wait_until(lambda: nodes.statuses(operator) == {200}, "both nodes have the balance", 60)
        yield nodes
