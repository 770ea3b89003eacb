"""A kind of lookup that a user's module adds: several keys in one request, on this node and another, of one version."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from include.declarations.load import load_catalog
from include.settings import Settings
from query_api.lookup import lookups
from query_api.lookup.routing import partition_of
from tests.unit.query_api.http.stops import PARTITIONS, Answer, StopsNode, other_node, stops_settings

KIND = '''
from dataclasses import dataclass
from foldlake import Endpoint, InvalidParameterError

@dataclass(frozen=True)
class ManyKeys(Endpoint):
    """Returns the records of the keys that a request lists."""

    path: str
    parameter: str
    fields: tuple[str, ...]

    @property
    def parameters(self):
        return (self.parameter,)

    def keys(self, given):
        if self.parameter not in given:
            raise InvalidParameterError("missing-keys", f"Name the keys in {self.parameter}.")
        return [key.encode() for key in given[self.parameter].split(",")]
'''
DECLARED = "DECLARATIONS = [READ_MODEL, LOCATION, ManyKeys({path!r}, 'stopIds', {fields!r})]\n"
PATH = "/api/stops.getMany"
KEYS = [f"stop-{number}" for number in range(20)]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other nodes may answer late: the tests of the other worker keep the cores busy."""
    monkeypatch.setattr(lookups, "ANSWER_TIMEOUT_S", 60.0)


def declare(settings: Settings, path: str = PATH, fields: Iterable[str] = ("n", "lat")) -> None:
    """Add the kind and one endpoint of it to the module of the stops."""
    module = settings.declaration_folders[-1] / "stops.py"
    text = module.read_text() + KIND
    module.write_text(text + DECLARED.format(path=path, fields=tuple(fields)) + "DECLARATIONS += LOOKUPS\n")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return stops_settings(tmp_path)


def test_records_of_two_nodes_are_in_the_order_of_the_keys(settings: Settings) -> None:
    def answer(target: str) -> Answer:
        key = target.partition("/records/")[2].partition("?")[0]
        state = {"n": KEYS.index(key), "lat": 0.5, "lon": 0.0}
        return 200, {"Foldlake-Lag-Ms": "4000"}, json.dumps({"state": state, "event_count": 1})

    declare(settings)
    with other_node(answer) as url:
        node = StopsNode(settings, url)
        own = [key for key in KEYS if partition_of(key.encode(), PARTITIONS) == 0]
        assert 0 < len(own) < len(KEYS)
        node.store("stops", 1, {key: {"n": KEYS.index(key), "lat": 0.5, "lon": 0.0} for key in own})
        node.publish()

        found = node.client.get(f"{PATH}?stopIds={','.join(KEYS)}")

    assert json.loads(found.text) == [{"n": number, "lat": 0.5} for number in range(len(KEYS))]
    assert (found.headers["Foldlake-Version"], found.headers["Foldlake-Lag-Ms"]) == ("1", "4000")


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("", "missing-keys"),
        ("stopIds=a,,b", "invalid-key"),
        ("stopIds=" + "k" * 2_000, "invalid-key"),
        ("stopIds=" + ",".join(f"{number}" for number in range(501)), "too-many-keys"),
        ("stopIds=a&version=1", "unknown-parameter"),
        ("stopIds=%FF", "invalid-query"),
    ],
)
def test_a_request_that_is_not_valid_is_a_problem(settings: Settings, query: str, slug: str) -> None:
    declare(settings)
    node = StopsNode(settings)
    node.store("stops", 1, {})
    node.publish()

    found = node.client.get(f"{PATH}?{query}")

    assert (found.status_code, json.loads(found.text)["type"]) == (400, f"urn:foldlake:problem:{slug}")


@pytest.mark.parametrize(
    ("path", "fields", "message"),
    [
        ("/api/stops", ("n",), "use /api/<name>.<verb>"),
        (PATH, ("weight",), "returns weight, which stops does not have"),
    ],
)
def test_an_endpoint_that_cannot_work_is_left_out(
    settings: Settings, path: str, fields: tuple[str, ...], message: str
) -> None:
    declare(settings, path, fields)

    (failure,) = load_catalog(settings.declaration_folders).failures

    assert message in failure.error


def test_an_endpoint_has_no_path_of_a_lookup(settings: Settings) -> None:
    declare(settings, "/api/stops.get")

    with pytest.raises(Exception, match=r"/api/stops\.get is declared twice"):
        load_catalog(settings.declaration_folders)
