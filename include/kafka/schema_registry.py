"""The client of the schema registry: registers Foldlake's schemas and fetches schemas by id."""

import warnings
from functools import lru_cache

from include.errors import RegistryUnavailableError, SchemaError
from include.kafka.record_schema import RecordSchema

# On import, the client's optional OAuth support enables and emits a warning about a library that Foldlake does not use.
# Recording the warning suppresses its output.
with warnings.catch_warnings(record=True):
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

REQUEST_TIMEOUT_S = 5
NOT_FOUND = 404
SERVER_ERRORS = 500


class SchemaRegistry:
    """Schemas by id and subject, through Confluent's API.

    The schema of an id never changes, so fetched schemas are cached without a limit.
    """

    def __init__(self, url: str, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self.url = url
        self._client = SchemaRegistryClient({"url": url, "timeout": timeout_s, "max.retries": 0})
        self._fetch_cached = lru_cache(maxsize=None)(self._fetch)

    def register(self, topic: str, schema: RecordSchema) -> int:
        """Register a schema for a topic (TopicRecordNameStrategy) and return its id; the same schema gives the same id.

        Raises SchemaError when the registry rejects it as incompatible, RegistryUnavailableError when it does not respond.
        """
        subject = f"{topic}-{schema.full_name}"
        try:
            return int(self._client.register_schema(subject, Schema(schema.text, "AVRO")))
        except SchemaRegistryError as error:
            if error.http_status_code < SERVER_ERRORS:
                message = (
                    f"The schema registry rejects the schema for subject {subject}: {error.error_message}"
                )
                raise SchemaError(message) from error
            raise self._unavailable(error) from error
        except Exception as error:
            raise self._unavailable(error) from error

    def schema_by_id(self, schema_id: int) -> RecordSchema | None:
        """Return the record schema with this id, or None when the registry has no schema with this id, or it is not a record.

        Raises RegistryUnavailableError when the registry does not respond: whether the id exists is then unknown.
        """
        schema = self._fetch_cached(schema_id)
        if schema is None:
            self._fetch_cached.cache_clear()  # an unused id may be assigned later
        return schema

    def _fetch(self, schema_id: int) -> RecordSchema | None:
        try:
            fetched = self._client.get_schema(schema_id)
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND:
                return None
            raise self._unavailable(error) from error
        except Exception as error:
            raise self._unavailable(error) from error
        try:
            return RecordSchema.parse(fetched.schema_str or "", f"schema {schema_id}")
        except SchemaError:
            return None

    def schema_ids(self, topic: str) -> dict[int, RecordSchema]:
        """Return every schema registered for a topic's records, by id.

        Raises RegistryUnavailableError when the registry does not respond.
        """
        prefix = f"{topic}-"
        found: dict[int, RecordSchema] = {}
        try:
            for subject in self._client.get_subjects():
                if not subject.startswith(prefix):
                    continue
                for number in self._client.get_versions(subject):
                    schema_id = self._client.get_version(subject, number).schema_id
                    schema = None if schema_id is None else self.schema_by_id(schema_id)
                    if schema is not None and schema_id is not None:
                        found[schema_id] = schema
        except (RegistryUnavailableError, SchemaError):
            raise
        except Exception as error:
            raise self._unavailable(error) from error
        return found

    def _unavailable(self, error: Exception) -> RegistryUnavailableError:
        return RegistryUnavailableError(
            f"The schema registry at {self.url} does not respond ({error}). Hint: check that it is up and its address is right."
        )
