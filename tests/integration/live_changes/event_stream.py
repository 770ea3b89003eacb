"""A client of a stream of changes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.waiting import wait_until

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Event:
    """An event: its name, its data, and the id after it."""

    name: str
    data: dict[str, Any]
    event_id: str | None

    @property
    def key(self) -> str:
        """The key that it is about."""
        return str(self.data["key"])


@dataclass
class EventStream:
    """What a stream has sent so far. last_id: the last event id, as a browser keeps it."""

    url: str
    events: list[Event] = field(default_factory=list)
    comments: int = 0
    last_id: str | None = None
    has_ended: bool = False
    error: str = ""

    def follow(self, response: httpx.Response, is_stopping: threading.Event) -> None:
        """Parse the stream until it ends."""
        name, data = "message", ""
        try:
            for line in response.iter_lines():
                if is_stopping.is_set():
                    return
                kind, _, value = line.partition(":")
                value = value.removeprefix(" ")
                match kind:
                    case "event":
                        name = value
                    case "data":
                        data += value
                    case "id":
                        self.last_id = value
                    case "" if line:
                        self.comments += 1
                    case "":
                        if data:
                            self.events.append(Event(name, json.loads(data), self.last_id))
                        name, data = "message", ""
        except httpx.HTTPError as error:
            self.error = repr(error)
        self.has_ended = True

    def wait_for(self, condition: Callable[["EventStream"], bool], what: str) -> None:
        """Wait until the stream has sent what the condition expects."""
        try:
            wait_until(lambda: condition(self), what, poll_s=0.01)
        except AssertionError as error:
            raise AssertionError(f"{what}: {self}") from error

    def wait_until_live(self) -> "EventStream":
        """Wait until the stream sends changes as they come."""
        self.wait_for(lambda stream: bool(stream.named("live")), "the stream is live")
        return self

    def named(self, *names: str) -> list[Event]:
        """Return the events with these names."""
        return [event for event in list(self.events) if event.name in names]

    def of_key(self, key: str) -> list[Event]:
        """Return the events about a key."""
        return [event for event in list(self.events) if event.data.get("key") == key]


@contextmanager
def event_stream(port: int, path: str, last_event_id: str | None = None) -> Iterator[EventStream]:
    """Follow a stream in a thread during a block."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    is_stopping = threading.Event()
    with (
        httpx.Client(trust_env=False, timeout=TIMEOUT_S) as client,
        client.stream("GET", f"http://127.0.0.1:{port}{path}", headers=headers) as response,
    ):
        if response.status_code != httpx.codes.OK:
            response.read()
            raise AssertionError(f"{response.status_code} {response.text}")
        assert response.headers["Content-Type"] == "text/event-stream"
        stream = EventStream(path)
        thread = threading.Thread(target=stream.follow, args=(response, is_stopping), daemon=True)
        thread.start()
        try:
            yield stream
        finally:
            is_stopping.set()
            with suppress(OSError):
                socket = response.extensions["network_stream"].get_extra_info("socket")
                socket.shutdown(2)
            thread.join(TIMEOUT_S)
