"""The connections of one process to a Redis or Valkey. Messages name the server without its password."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha1
from typing import Any, TypeVar
from urllib.parse import urlsplit

from valkey import Valkey
from valkey.backoff import NoBackoff
from valkey.connection import ConnectionPool
from valkey.exceptions import AuthenticationError, AuthorizationError, NoScriptError, ValkeyError
from valkey.exceptions import ConnectionError as ServerConnectionError
from valkey.exceptions import TimeoutError as ServerTimeoutError
from valkey.retry import Retry

from include.errors import SettingsError
from include.settings.groups import RedisSettings
from query_api.errors import ServerWriteError

DEFAULT_PORT = 6379
CONNECT_TIMEOUT_S = 0.25
# A server that did not answer gets no request for this time: otherwise each lookup would occupy a thread until its timeout.
DOWN_S = 0.25

T = TypeVar("T")
# Its type hints are those of its asynchronous variant too, and partly missing; so are those of a connection.
Client = Any


class Unanswered(Exception):  # noqa: N818 - a reader and a writer turn it into errors of their own
    """The server did not answer; the message says why, without the server's name."""


class RedisServer:
    """A server. Thread-safe; connections open when they are needed."""

    def __init__(self, settings: RedisSettings) -> None:
        """Connect nothing yet; raises SettingsError for a URL that is not valid."""
        url = settings.url.get_secret_value()
        self.label = f"Redis at {_address(url)}"
        try:
            pool = ConnectionPool.from_url(  # type: ignore[no-untyped-call]  # it has no hints
                url,
                socket_connect_timeout=CONNECT_TIMEOUT_S,
                socket_timeout=settings.timeout_s,
                socket_keepalive=True,
                # A connection that the server closed while it was idle is opened again.
                retry=Retry(NoBackoff(), 1),
                retry_on_error=[ServerConnectionError],
                client_name="foldlake",
            )
        except ValueError as error:
            message = "FOLDLAKE_REDIS_URL is not valid: give redis://, rediss:// or unix:// with a host, a port and a database."
            raise SettingsError(message) from error
        self._pool = pool
        self._client: Client = Valkey(connection_pool=pool)
        self._idle: deque[Client] = deque()
        self._down_until = 0.0

    def call(self, request: Callable[[Client], T]) -> T:
        """Return the result of a request; raises Unanswered, and the client's own errors in the server's answers."""
        with self._noting_failures():
            return request(self._client)

    def write(self, request: Callable[[Client], T]) -> T:
        """Return the result of a writer's request; raises ServerWriteError if the server does not answer, or rejects it."""
        try:
            return self.call(request)
        except Unanswered as error:
            raise ServerWriteError.unanswered(self.label, error) from error
        except ValkeyError as error:
            raise ServerWriteError.refused(self.label, error) from error

    def ask(self, *command: bytes | str) -> Any:  # noqa: ANN401 - the command's own type
        """Return the answer to one command; raises as `call` does.

        Every lookup uses it. The client's own way takes twice the processor time.
        """
        with self._noting_failures():
            try:
                idle = self._idle.pop()
            except IndexError:
                idle = None
            if idle is not None:
                # The server may have closed the connection while it was idle: a new one shows whether it is up.
                with suppress(ServerConnectionError):
                    return self._exchange(idle, command)
            return self._exchange(self._pool.make_connection(), command)

    def _exchange(self, connection: Client, command: Sequence[bytes | str]) -> Any:  # noqa: ANN401 - the command's own type
        try:
            connection.send_command(*command)
            answer = connection.read_response()
        except BaseException:
            connection.disconnect()
            raise
        self._idle.append(connection)
        return answer

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        if time.monotonic() < self._down_until:
            raise Unanswered("it did not answer a moment ago")
        try:
            yield
        except (ServerConnectionError, ServerTimeoutError, OSError) as error:
            self._down_until = time.monotonic() + DOWN_S
            raise Unanswered(_reason(error)) from error

    def run(self, script: str, keys: Sequence[str], arguments: Sequence[bytes | str | int]) -> Any:  # noqa: ANN401 - the script's own type
        """Return the result of a script, which the server is given when it does not have it; raises as `call` does."""
        name = digest(script)

        def request(client: Client) -> Any:  # noqa: ANN401 - the script's own type
            try:
                return client.evalsha(name, len(keys), *keys, *arguments)
            except NoScriptError:
                client.script_load(script)
                return client.evalsha(name, len(keys), *keys, *arguments)

        return self.call(request)


def digest(script: str) -> str:
    """Return the name by which a server runs a script that it has loaded."""
    return sha1(script.encode(), usedforsecurity=False).hexdigest()


def _address(url: str) -> str:
    """Return the host and port of a URL, or the path of its socket."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        return "an address that is not valid"
    return f"{parts.hostname}:{port}" if parts.hostname else parts.path


def _reason(error: Exception) -> str:
    text = (str(error) or type(error).__name__).splitlines()[0][:200]
    if isinstance(error, AuthenticationError | AuthorizationError):
        return f"{text}; check the credentials in FOLDLAKE_REDIS_URL"
    return text
