"""Readers that query every node continuously while versions change and record every wrong answer."""

import itertools
import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from tests.support.http.local_http import http_client

TIMEOUT_S = 10.0
PAUSE_S = 0.1


class Readers:
    """One thread per node, which queries one key after the other for the duration of the block.

    fails_over: whether a thread asks the next node if its own does not answer, as behind a load balancer.
    faults: failed lookups, amounts that do not match their event_count, event counts that decreased within a version.
    versions: version -> number of answers.
    """

    def __init__(
        self,
        ports: Sequence[int],
        read_model: str,
        keys: Sequence[str],
        cents_per_event: int,
        *,
        fails_over: bool = False,
    ) -> None:
        self.faults: list[str] = []
        self.versions: Counter[int] = Counter()
        self._read_model = read_model
        self._keys = keys
        self._cents_per_event = cents_per_event
        self._stopping = threading.Event()
        asked = [
            (*ports[first:], *ports[:first]) if fails_over else (port,) for first, port in enumerate(ports)
        ]
        self._threads = [threading.Thread(target=self._query, args=(one,), daemon=True) for one in asked]

    def __enter__(self) -> Self:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the threads."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S * 2)

    def _query(self, ports: Sequence[int]) -> None:
        # Each node promises that its own answers do not go backwards.
        newest: dict[int, dict[tuple[str, int], int]] = {port: {} for port in ports}
        with http_client(TIMEOUT_S) as client:
            for key in itertools.cycle(self._keys):
                if self._stopping.wait(PAUSE_S):
                    return
                failures = []
                for port in ports:
                    response = self._ask(client, port, key)
                    if isinstance(response, httpx.Response):
                        self._check(response.json(parse_float=str), newest[port])
                        break
                    failures.append(response)
                else:
                    self.faults.append("; ".join(failures))

    def _ask(self, client: httpx.Client, port: int, key: str) -> httpx.Response | str:
        """Return the answer, or what went wrong."""
        url = f"http://127.0.0.1:{port}/api/read-models/{self._read_model}/records/{key}"
        try:
            response = client.get(url)
        except httpx.HTTPError as error:
            return f"{url}: {error!r}"
        return response if response.is_success else f"{url}: {response.status_code} {response.text}"

    def _check(self, answer: dict[str, object], newest: dict[tuple[str, int], int]) -> None:
        # A node of the previous release has the old name.
        count = int(str(answer["eventCount"] if "eventCount" in answer else answer["event_count"]))
        version = int(str(answer["version"]))
        key_in_version = (str(answer["key"]), version)
        self.versions[version] += 1
        if count < newest.get(key_in_version, 0):
            self.faults.append(f"{key_in_version}: event_count {count} after {newest[key_in_version]}")
        newest[key_in_version] = max(count, newest.get(key_in_version, 0))
        cents = count * self._cents_per_event
        state = answer["state"]
        assert isinstance(state, dict)
        if state["amount"] != f"{cents // 100}.{cents % 100:02d}":
            self.faults.append(f"{key_in_version}: {state} after {count} events")
