"""The client of the schema registry: registers Foldlake's schemas and fetches schemas by id and by topic."""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from include.kafka.record_schema import RecordSchema
from include.kafka.registry.registry_requests import (
    FailedRequestError,
    NotFoundError,
    RegistryRequests,
    Schema,
)
from include.kafka.registry.writer_schema import AVRO, FULL_NAME, unusable, writer_schema

LOG = logging.getLogger(__name__)
REQUEST_TIMEOUT_S = 5
# How long a job waits for a registry that is busy or restarts, before it fails and Airflow repeats it.
JOB_PATIENCE_S = 60.0
# The subject of TopicNameStrategy is `<topic>-value`.
VALUE = "value"

T = TypeVar("T")


class UnusableReferenceError(Exception):
    """A schema refers to one that the registry does not have, or that refers to itself."""


class SchemaRegistry:
    """Schemas by id and subject, through Confluent's API.

    The schema of an id never changes, so fetched schemas are cached without a limit. patience_s: how long a request is repeated while
    the registry is busy, for callers that do not repeat it themselves.

    All methods raise RegistryUnavailableError when the registry does not respond or does not serve the caller.
    """

    def __init__(self, url: str, timeout_s: float = REQUEST_TIMEOUT_S, patience_s: float = 0.0) -> None:
        self._requests = RegistryRequests(url, timeout_s, patience_s)
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
