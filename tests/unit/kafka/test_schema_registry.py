"""An answer of the schema registry is about the schema, the caller or the server: only the first one rejects anything."""

import time
from collections.abc import Callable, Iterator

import pytest

from include.errors import RegistryUnavailableError, SchemaError
from include.http_replies import MAX_RETRY_AFTER_S, retry_after_s
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.settings import RegistryConnection, Settings
from tests.support.http.played_registry import add_schema, add_subject, coded, record
from tests.support.http.played_server import HTML, PlayedServer, Reply, played_server

TOPIC = "bug"
TIMEOUT_S = 0.5
REGISTER = f"POST /subjects/{TOPIC}-shop.Sold/versions"


SOLD = record("shop.Sold", {"name": "id", "type": "string"})


@pytest.fixture
def server() -> Iterator[PlayedServer]:
    with played_server() as server:
        yield server


@pytest.fixture
def registry(server: PlayedServer) -> SchemaRegistry:
    return SchemaRegistry(RegistryConnection(server.url), TIMEOUT_S)


@pytest.mark.parametrize("reply", [coded(409, 409), coded(422, 42201)])
def test_answer_about_the_schema_rejects_it(
    server: PlayedServer, registry: SchemaRegistry, reply: Reply
) -> None:
    server.otherwise = reply

    with pytest.raises(SchemaError, match=r"rejects the schema for subject bug-shop\.Sold: a message"):
        registry.register(TOPIC, RecordSchema.parse(SOLD, "test"))


# Reply, and part of the message. None of them says anything about a schema or an id.
OTHER_ANSWERS = {
    "unauthorized": (coded(401, 40101), r"refuses this caller .* FOLDLAKE_SCHEMA_REGISTRY_URL"),
    "forbidden": (Reply(403, HTML), r"refuses this caller .* FOLDLAKE_SCHEMA_REGISTRY_URL"),
    "wrong URL": (Reply(404, HTML), r"does not reply as a registry .* FOLDLAKE_SCHEMA_REGISTRY_URL"),
    "wrong path": (Reply(404, {"status": 404, "title": "none"}), "does not reply as a registry"),
    "no body": (Reply(404), "does not reply as a registry"),
    "method": (Reply(405, HTML), "does not reply as a registry"),
    "timeout of the request": (Reply(408, HTML), "cannot serve the request now"),
    "HTML conflict": (Reply(409, HTML), "does not reply as a registry"),
    "too large": (Reply(413, HTML), "does not reply as a registry"),
    "read only": (coded(422, 42205), "does not accept the request"),
    "too many": (coded(429, 42901), "cannot serve the request now"),
    "redirect": (Reply(302, "", {"Location": "https://sign-in.example"}), "does not reply as a registry"),
    "failure": (coded(500, 50001), "fails at the request"),
    "bad gateway": (Reply(502, HTML), "cannot serve the request now"),
    "restart": (Reply(503, HTML), "cannot serve the request now"),
    "HTML": (Reply(200, HTML), "does not reply as a registry"),
    "other JSON": (Reply(200, "[]"), "does not reply as a registry"),
    "too slow": (Reply(200, "{}", delay_s=2 * TIMEOUT_S), "does not respond"),
}


@pytest.mark.parametrize(("reply", "message"), OTHER_ANSWERS.values(), ids=OTHER_ANSWERS)
def test_any_other_answer_rejects_neither_a_schema_nor_an_id(
    server: PlayedServer, registry: SchemaRegistry, reply: Reply, message: str
) -> None:
    server.otherwise = reply

    with pytest.raises(RegistryUnavailableError, match=message):
        registry.register(TOPIC, RecordSchema.parse(SOLD, "test"))
    with pytest.raises(RegistryUnavailableError):
        registry.schema_by_id(7)
    if reply.body != "[]":
        with pytest.raises(RegistryUnavailableError):
            registry.schema_ids(TOPIC)


def test_registry_that_does_not_run_is_unavailable() -> None:
    with pytest.raises(RegistryUnavailableError, match=r"127\.0\.0\.1:1 does not respond"):
        SchemaRegistry(RegistryConnection("http://127.0.0.1:1"), TIMEOUT_S).schema_by_id(7)


def test_error_shows_no_password(server: PlayedServer) -> None:
    settings = Settings.of(schema_registry_url=server.url.replace("//", "//me:secret@"))
    with pytest.raises(RegistryUnavailableError) as raised:
        SchemaRegistry(settings.registry.connection, TIMEOUT_S).schema_by_id(7)
    assert "secret" not in str(raised.value)


def test_id_that_the_registry_does_not_have_is_looked_up_again(
    server: PlayedServer, registry: SchemaRegistry
) -> None:
    server.otherwise = coded(404, 40403)
    assert registry.schema_by_id(7) is None

    add_schema(server, 7, SOLD)

    found = registry.schema_by_id(7)
    assert found is not None
    assert (found.full_name, found.problem) == ("shop.Sold", None)


def test_caller_that_is_refused_recovers_by_itself(server: PlayedServer, registry: SchemaRegistry) -> None:
    server.otherwise = Reply(401, HTML)
    schema = RecordSchema.parse(SOLD, "test")
    with pytest.raises(RegistryUnavailableError):
        registry.register(TOPIC, schema)

    server.replies[REGISTER] = Reply(body={"id": 3})

    assert registry.register(TOPIC, schema) == 3


def test_no_request_is_sent_before_retry_after(server: PlayedServer, registry: SchemaRegistry) -> None:
    server.otherwise = Reply(429, HTML, {"Retry-After": "20"})
    with pytest.raises(RegistryUnavailableError):
        registry.schema_by_id(7)

    with pytest.raises(RegistryUnavailableError, match="accepts no request within") as raised:
        registry.schema_by_id(7)

    assert len(server.requests) == 1
    assert 19 < raised.value.retry_after_s <= 20


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_patient_caller_repeats_the_request_after_retry_after(server: PlayedServer, status: int) -> None:
    registry = SchemaRegistry(RegistryConnection(server.url), TIMEOUT_S, patience_s=10.0)
    server.replies["GET /schemas/ids/7"] = Reply(status, HTML, {"Retry-After": "1"})
    started_s = time.monotonic()

    def recover(wait_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
        add_schema(server, 7, SOLD)
        sleep(wait_s)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "sleep", recover)
        assert registry.schema_by_id(7) is not None

    assert server.requests.count("GET /schemas/ids/7") == 2
    assert time.monotonic() - started_s >= 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7),
        ("0", 0),
        ("100000", MAX_RETRY_AFTER_S),
        ("-3", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Fri, 01 Jan 2999 00:00:00 GMT", MAX_RETRY_AFTER_S),
    ],
)
def test_retry_after_is_a_bounded_number_or_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


def test_topic_has_its_own_subjects_only(server: PlayedServer, registry: SchemaRegistry) -> None:
    for number, (subject, text) in enumerate(
        {
            "bug-shop.Sold": SOLD,
            "bug-value": record("Any"),
            "bug-sale-shop.Sold": SOLD,
            "bug-sale-value": SOLD,
            "bug-sale.Sold": record("another.Sold"),
            "bug-key": '"string"',
            "bugs-shop.Sold": SOLD,
            "shop.Sold": SOLD,
        }.items(),
        start=1,
    ):
        add_subject(server, subject, number)
        add_schema(server, number, text)

    assert registry.schema_ids("bug").keys() == {1, 2}
    assert registry.schema_ids("bug-sale").keys() == {3, 4}


@pytest.mark.parametrize("reply", [coded(404, 40401), coded(500, 50001)])
@pytest.mark.parametrize(
    "path", ["/subjects/bug-value/versions", "/subjects/bug-value/versions/1", "/schemas/ids/2"]
)
def test_schema_that_the_registry_cannot_return_stops_no_other_one(
    server: PlayedServer, registry: SchemaRegistry, path: str, reply: Reply
) -> None:
    add_subject(server, "bug-value", 2)
    add_subject(server, "bug-shop.Sold", 1, 3)
    for schema_id in (1, 2, 3):
        add_schema(server, schema_id, SOLD)
    server.replies[f"GET {path}"] = reply

    assert registry.schema_ids("bug").keys() == {1, 3}


def test_registry_that_fails_at_every_schema_is_unavailable(
    server: PlayedServer, registry: SchemaRegistry
) -> None:
    add_subject(server, "bug-shop.Sold", 1)
    server.otherwise = coded(500, 50001)

    with pytest.raises(RegistryUnavailableError, match="fails at the request"):
        registry.schema_ids("bug")
