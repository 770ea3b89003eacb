"""A node that demands API keys, over the application of the read model `parcels`, for the tests of its guard."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from werkzeug.test import Client, TestResponse

from include.access.api_key import ApiKey, create_key, revoked
from include.access.audit import FILE
from include.access.caller import Scope
from include.settings import Settings
from query_api.access.key_file import write_key_file
from tests.unit.query_api.http.parcels import KEY, Node, parcels_settings

LOOKUP = "/api/parcels.getPlace"
QUERY = {"parcelId": KEY}
RECORDS = "/api/read-models/parcels/records"
WEIGH = "/api/parcels.weigh"
BODY = b'{"parcelId": "A", "grams": 5}'
JSON = {"Content-Type": "application/json"}
NODE_WIDE = [
    "/",
    "/api/status",
    "/metrics",
    "/metrics/status",
    "/api/read-models",
    "/api/partitions",
    "/reports/quality/",
]
READ, WRITE = frozenset({Scope.READ}), frozenset({Scope.WRITE})
OTHER = frozenset({"balance"})


class Guarded:
    """A node that demands keys."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys: dict[str, ApiKey] = {}
        self.node = Node(settings)
        self.client: Client = self.node.fast
        self._store()

    def secret(
        self, scopes: frozenset[Scope], read_models: frozenset[str] | None = None, expires_in_s: float = 600
    ) -> str:
        """Return the secret of a new key, which the node knows."""
        until = datetime.now(UTC) + timedelta(seconds=expires_in_s)
        key, secret = create_key(f"key {len(self.keys)}", scopes, read_models, until)
        self.keys[key.id] = key
        self._store()
        return secret

    def revoke(self, secret: str) -> None:
        """Revoke a key."""
        key_id = secret.split("_")[1]
        self.keys[key_id] = revoked(self.keys[key_id], datetime.now(UTC))
        self._store()

    def _store(self) -> None:
        write_key_file(self.settings.store_dir, self.keys.values())

    def get(self, path: str, secret: str = "", query: Mapping[str, str] | None = None) -> TestResponse:
        """Send a GET."""
        return self.client.get(path, query_string=query, headers=bearer(secret))

    def audited(self) -> list[dict[str, Any]]:
        """Return the records of the audit log."""
        path = self.settings.home / FILE
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"} if secret else {}


def slug(answer: TestResponse) -> str:
    return str(json.loads(answer.data)["type"]).rpartition(":")[2]


def guarded_node(tmp_path: Path) -> Guarded:
    """Return such a node in a folder."""
    return Guarded(parcels_settings(tmp_path).changed(auth="keys"))
