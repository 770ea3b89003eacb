"""Requests to the schema registry: whether an error is about the schema, the caller or the server, and when to repeat a request."""

import logging
import time
import warnings
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

import httpx

from include.errors import RegistryUnavailableError, SchemaError
from include.http_replies import BUSY, REFUSED, retry_after_s, without_credentials

# On import, the client's optional OAuth support enables and emits a warning about a library that Foldlake does not use.
# Recording the warning suppresses its output.
with warnings.catch_warnings(record=True):
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

__all__ = ["FailedRequestError", "NotFoundError", "RegistryRequests", "Schema"]

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
    f"set {SETTING} to http(s)://user:password@host… with credentials that may read and register schemas, or grant these "
    "credentials the permission. After the latter, nothing has to be restarted"
)

T = TypeVar("T")


class NotFoundError(Exception):
    """The registry does not have the subject, version or schema."""


class BusyRegistryError(RegistryUnavailableError):
    """The registry did not respond, or could not serve a request just then: the same request may succeed."""


class FailedRequestError(RegistryUnavailableError):
    """The registry failed at this request (500): another one may succeed."""


class RegistryRequests:
    """Makes requests with the library's client. Thread-safe.

    url: the registry's, without credentials. patience_s: how long a request is repeated while the registry is busy. Without patience,
    it raises; until the registry's `Retry-After` has passed, so do the requests after it, which are not sent.
    """

    def __init__(self, url: str, timeout_s: float, patience_s: float) -> None:
        self.url = without_credentials(url)
        self.client = SchemaRegistryClient({"url": url, "timeout": timeout_s, "max.retries": 0})
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
            raise self._busy(f"is busy, and wants no request within the next {wait_s:.0f} s")
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
