"""Reads all records of a partition from a query node as one stream, and continues after an interruption."""

import time
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlencode, urlsplit

import pyarrow as pa

from include.errors import FoldlakeError
from include.http_replies import BUSY
from include.nodes.peers import HOP_ANY, HOP_HEADER
from include.nodes.record_requests import BATCH_END, BATCH_POSITION, records_path

# A node sends each batch as soon as it has read it.
ANSWER_TIMEOUT_S = 10.0
RETRY_S = 0.2
RETRIED = {HTTPStatus.MISDIRECTED_REQUEST, *BUSY}
MAX_SHOWN = 200


class StreamUnavailableError(FoldlakeError):
    """A node rejected the request for a stream of records, or sent nothing for too long."""


class RecordStreamClient:
    """Reads one partition of a version of a read model from one node.

    url: of the node. wait_s: how long it may send nothing before the stream is given up.
    """

    def __init__(self, url: str, read_model: str, version: int, partition: int, wait_s: float) -> None:
        self._url = urlsplit(url)
        self._path = records_path(read_model)
        self._query = {"format": "arrow", "partition": partition, "version": version}
        self._wait_s = wait_s

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield each batch with the changelog offset that the store had read at least.

        The columns are key, value, event_count and offset, ordered by key. A batch is of one commit; a later one may be of a later commit.
        Raises StreamUnavailableError.
        """
        after = ""
        waiting_since_s = time.monotonic()
        while True:
            try:
                for position, is_last, batch in self._request(after):
                    yield position, batch
                    if is_last:
                        return
                    waiting_since_s = time.monotonic()
                    if len(batch):
                        after = batch.column("key")[-1].as_py()
                reason = "the stream ended early"
            except (OSError, HTTPException, pa.ArrowInvalid) as error:
                reason = str(error) or type(error).__name__
            if time.monotonic() - waiting_since_s > self._wait_s:
                raise StreamUnavailableError(f"{self._url.geturl()} sends no records: {reason}")
            time.sleep(RETRY_S)

    def _request(self, after: str) -> Iterator[tuple[int, bool, pa.RecordBatch]]:
        """Yield the position, whether it is the last one, and the records of each batch after a key."""
        connection = HTTPConnection(
            self._url.hostname or "", self._url.port or HTTPConnection.default_port, timeout=ANSWER_TIMEOUT_S
        )
        with closing(connection):
            query = urlencode({**self._query, "after": after})
            connection.request("GET", f"{self._path}?{query}", headers={HOP_HEADER: HOP_ANY})
            response = connection.getresponse()
            self._require_ok(response)
            with pa.ipc.open_stream(response) as reader:
                for batch, metadata in reader.iter_batches_with_custom_metadata():
                    given = metadata or {}
                    yield int(given.get(BATCH_POSITION, 0)), BATCH_END.encode() in given, batch

    def _require_ok(self, response: HTTPResponse) -> None:
        """Raise OSError for an answer after which the request is repeated, StreamUnavailableError for any other without records."""
        if response.status == HTTPStatus.OK:
            return
        reason = f"{response.status} {response.read(MAX_SHOWN).decode(errors='replace')}"
        if response.status in RETRIED:
            raise OSError(reason)
        raise StreamUnavailableError(f"{self._url.geturl()} rejected {self._path}: {reason}")
