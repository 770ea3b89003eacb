"""The client of the schema registry: registers Foldlake's schemas and fetches schemas by id and by topic.

For each error it tells whether it is about the schema, the caller or the server, and when to repeat the request.
"""

import logging
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import TypeVar

import httpx

from include.errors import RegistryUnavailableError, SchemaError
from include.http_replies import BUSY, REFUSED, retry_after_s
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.writer_schema import AVRO, FULL_NAME, unusable, writer_schema
from include.settings import RegistryConnection

# On import, the client's optional OAuth support enables and emits a warning about a library that Foldlake does not use.
# Recording the warning suppresses its output.
with warnings.catch_warnings(record=True):
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

LOG = logging.getLogger(__name__)
RETRY_S = 1.0
SETTING = "FOLDLAKE_SCHEMA_REGISTRY_URL"
# The registry's own answers about a schema.
REJECTED = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
# One of them that is about the subject: it takes no new schemas.
READ_ONLY_CODE = 42205
# The registry's codes of a subject, version or schema that does not exist. A server that is no registry answers 404 without such a code.
NOT_FOUND_CODES = range(40400, 40500)
CHECK_URL = f"check that {SETTING} is the base URL of the registry's Confluent-compatible API, and that no proxy replies instead"
CHECK_CREDENTIALS = (
    f"set {SETTING} to http(s)://user:password@host…, or FOLDLAKE_SCHEMA_REGISTRY_USERNAME and FOLDLAKE_SCHEMA_REGISTRY_PASSWORD, "
    "with credentials that may read and register schemas, or grant these credentials the permission. After the latter, nothing has to be restarted"
)
REQUEST_TIMEOUT_S = 5
# How long a job waits for a registry that is busy or restarts, before it fails and Airflow repeats it.
JOB_PATIENCE_S = 60.0
# The subject of TopicNameStrategy is `<topic>-value`.
VALUE = "value"

T = TypeVar("T")


class NotFoundError(Exception):
    """The registry does not have the subject, version or schema."""


class BusyRegistryError(RegistryUnavailableError):
    """The registry did not respond, or could not serve a request just then: the same request may succeed."""


class FailedRequestError(RegistryUnavailableError):
    """The registry failed at this request (500): another one may succeed."""


class RegistryRequests:
    """Makes requests with the library's client. Thread-safe.

    patience_s: how long a request is repeated while the registry is busy. Without patience,
    it raises; until the registry's `Retry-After` has passed, so do the requests after it, which are not sent.
    """

    def __init__(self, registry: RegistryConnection, timeout_s: float, patience_s: float) -> None:
        self.url = registry.url
        self.client = SchemaRegistryClient(
            {**registry.client_settings, "timeout": timeout_s, "max.retries": 0}
        )
        # The library drops the headers of an error response.
        self.client._rest_client.session.event_hooks = {"response": [self._note_retry_after]}  # noqa: SLF001
        self._patience_s = patience_s
        self._not_before_s = 0.0

    def send(self, request: Callable[[SchemaRegistryClient], T], *, registers: str = "") -> T:
        """Return what a request returns. registers: the subject for which it registers a schema, if it does.

        Raises NotFoundError; SchemaError when the registry rejects the schema to register; FailedRequestError;
        RegistryUnavailableError for any other answer, and for none.
        """
        deadline_s = time.monotonic() + self._patience_s
        while True:
            try:
                return self._send(request, registers)
            except BusyRegistryError as error:
                wait_s = max(RETRY_S, error.retry_after_s)
                if time.monotonic() + wait_s > deadline_s:
                    raise
                LOG.info("repeating the request in %.0f s: %s", wait_s, error)
            time.sleep(wait_s)

    def unusable_reply(self, reply: object) -> RegistryUnavailableError:
        """Return the error of a reply that is none of a registry."""
        return self._error(f"does not reply as a registry does ({reply!s:.300})", CHECK_URL)

    def _send(self, request: Callable[[SchemaRegistryClient], T], registers: str) -> T:
        wait_s = self._not_before_s - time.monotonic()
        if wait_s > 0:
            raise self._busy(f"is busy, and accepts no request within the next {wait_s:.0f} s")
        try:
            return request(self.client)
        except SchemaRegistryError as error:
            raise self._meaning(error, registers) from error
        except httpx.TransportError as error:
            raise self._busy(f"does not respond ({str(error) or type(error).__name__})") from error
        except Exception as error:
            raise self.unusable_reply(repr(error)) from error

    def _meaning(self, error: SchemaRegistryError, registers: str) -> Exception:
        status, code = error.http_status_code, error.error_code
        # A proxy, or another server, sends no such code. Apicurio sends 0 if it cannot compare the schema with an earlier version of the
        # subject, because that version refers to other schemas.
        is_registry = isinstance(code, int) and code >= 0
        reply = f"{status}: {error.error_message!s:.300}"
        if status == HTTPStatus.NOT_FOUND and code in NOT_FOUND_CODES and not registers:
            return NotFoundError(reply)
        if registers and status in REJECTED and is_registry and code != READ_ONLY_CODE:
            return SchemaError(
                f"The schema registry rejects the schema for subject {registers}: {error.error_message}"
            )
        if status in REFUSED:
            return self._error(f"refuses this caller ({reply})", CHECK_CREDENTIALS)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in BUSY:
            return self._failure(status, reply)
        if is_registry:
            return self._error(f"does not accept the request ({reply})", "correct its configuration")
        return self.unusable_reply(reply)

    def _failure(self, status: int, reply: str) -> RegistryUnavailableError:
        if status in BUSY:
            return self._busy(f"cannot serve the request now ({reply})")
        return self._error(
            f"fails at the request ({reply})", "its log contains the cause", FailedRequestError
        )

    def _note_retry_after(self, response: httpx.Response) -> None:
        wait_s = retry_after_s(response.headers.get("Retry-After")) if response.is_error else None
        if wait_s is not None:
            self._not_before_s = time.monotonic() + wait_s

    def _busy(self, problem: str) -> RegistryUnavailableError:
        error = self._error(problem, "check that it is up and its address is right", BusyRegistryError)
        error.retry_after_s = max(0.0, self._not_before_s - time.monotonic())
        return error

    def _error(
        self, problem: str, hint: str, kind: type[RegistryUnavailableError] = RegistryUnavailableError
    ) -> RegistryUnavailableError:
        return kind(f"The schema registry at {self.url} {problem}. Hint: {hint}.")


class UnusableReferenceError(Exception):
    """A schema refers to one that the registry does not have, or that refers to itself."""


class SchemaRegistry:
    """Schemas by id and subject, through Confluent's API.

    The schema of an id never changes, so fetched schemas are cached without a limit. patience_s: how long a request is repeated while
    the registry is busy, for callers that do not repeat it themselves.

    All methods raise RegistryUnavailableError when the registry does not respond or does not serve the caller.
    """

    def __init__(
        self, registry: RegistryConnection, timeout_s: float = REQUEST_TIMEOUT_S, patience_s: float = 0.0
    ) -> None:
        self._requests = RegistryRequests(registry, timeout_s, patience_s)
        self._fetch_cached = lru_cache(maxsize=None)(self._fetch)

    def register(self, topic: str, schema: RecordSchema) -> int:
        """Register a schema for a topic (TopicRecordNameStrategy) and return its id; the same schema gives the same id.

        Raises SchemaError when the registry rejects the schema, such as an incompatible one.
        """
        subject, wanted = f"{topic}-{schema.full_name}", Schema(schema.text, AVRO)
        return int(
            self._requests.send(lambda client: client.register_schema(subject, wanted), registers=subject)
        )

    def schema_by_id(self, schema_id: int) -> RecordSchema | None:
        """Return the schema with this id, with a `problem` if its records cannot be read; None when the registry has no such id."""
        schema = self._fetch_cached(schema_id)
        if schema is None:
            self._fetch_cached.cache_clear()  # an unused id may be assigned later
        return schema

    def usable_schema(self, schema_id: int) -> RecordSchema | None:
        """Return the record schema with this id; None when the registry has no such id, or records with it cannot be read."""
        schema = self.schema_by_id(schema_id)
        return schema if schema is not None and schema.problem is None else None

    def schema_ids(self, topic: str) -> dict[int, RecordSchema]:
        """Return every schema registered for a topic's records, by id; some may have a `problem`.

        A schema that the registry fails to return is left out, with a warning; it is fetched by its id once a record has it.
        """
        subjects = self._requests.send(lambda client: client.get_subjects())
        if not isinstance(subjects, list):
            raise self._requests.unusable_reply(subjects)
        found: dict[int, RecordSchema] = {}
        failures: list[FailedRequestError] = []
        for subject in map(str, subjects):
            name = _record_name(topic, subject)
            if name is None:
                continue
            for number in _delivered(lambda of=subject: self._versions(of), failures) or ():  # type: ignore[misc]  # called at once
                ids = _delivered(lambda of=subject, n=number: self._version(of, n), failures)  # type: ignore[misc]  # called at once
                # Only in TopicNameStrategy, the subject does not name the record.
                found |= {i: schema for i, schema in (ids or {}).items() if name in (VALUE, schema.full_name)}
        if failures and not found:
            raise failures[0]
        return found

    def _versions(self, subject: str) -> list[int]:
        return self._requests.send(lambda client: client.get_versions(subject))

    def _version(self, subject: str, number: int) -> dict[int, RecordSchema]:
        schema_id = self._requests.send(lambda client: client.get_version(subject, number)).schema_id
        schema = None if schema_id is None else self.schema_by_id(schema_id)
        return {} if schema is None or schema_id is None else {schema_id: schema}

    def _fetch(self, schema_id: int) -> RecordSchema | None:
        try:
            fetched = self._requests.send(lambda client: client.get_schema(schema_id))
        except NotFoundError:
            return None
        text, kind = fetched.schema_str or "", fetched.schema_type or AVRO
        try:
            return writer_schema(text, kind, self._referenced(fetched, ()))
        except UnusableReferenceError as error:
            return unusable(text, str(error), writer_schema(text, kind))

    def _referenced(self, schema: Schema, path: tuple[tuple[str, int], ...]) -> list[str]:
        """Return the texts of the schemas to which a schema refers, directly or through others."""
        texts: dict[str, None] = {}
        for reference in schema.references or ():
            of = str(reference.subject), int(reference.version or 0)
            named = f"the schema refers to {reference.name}, version {of[1]} of subject {of[0]}, which"
            if of in path:
                raise UnusableReferenceError(f"{named} refers to itself")
            try:
                # Also a deleted one: the records that were written with it remain.
                found = self._requests.send(lambda client, of=of: client.get_version(*of, deleted=True))  # type: ignore[misc]  # called at once
            except NotFoundError as error:
                raise UnusableReferenceError(f"{named} does not exist") from error
            texts |= dict.fromkeys(
                (*self._referenced(found.schema, (*path, of)), found.schema.schema_str or "")
            )
        return list(texts)


def _delivered(request: Callable[[], T], failures: list[FailedRequestError]) -> T | None:
    """Return what a request returns; None for what has been deleted meanwhile, or what the registry fails to return."""
    try:
        return request()
    except NotFoundError:
        return None
    except FailedRequestError as error:
        LOG.warning("a schema is left out: %s", error)
        failures.append(error)
        return None


def _record_name(topic: str, subject: str) -> str | None:
    """Return the record's name in the subject of a topic, or `value`; None for the subject of another topic.

    A record's name has no hyphen: `bug-sale-Sold` is a subject of `bug-sale`, not of `bug`.
    """
    name = subject.removeprefix(f"{topic}-")
    return name if name != subject and FULL_NAME.fullmatch(name) else None
