"""Reads all records of a partition from a query node as one stream, and continues after an interruption.

Apart from the client of records, because pyarrow takes time and memory to import.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlencode, urlsplit

import pyarrow as pa

from include.http_replies import BUSY
from include.nodes.peer_tls import ClientTls
from include.nodes.peers import HOP_ANY, HOP_HEADER
from include.nodes.record_client import PartitionReplica, ReplicaUnavailableError
from include.nodes.record_requests import ARROW, ARROW_TYPE, BATCH_END, KeySample, records_path

# A node sends each batch as soon as it has read it.
ANSWER_TIMEOUT_S = 10.0
RETRY_S = 0.2
RETRIED = {HTTPStatus.MISDIRECTED_REQUEST, *BUSY}
MAX_SHOWN = 200
# The key, the changelog's value, the number of events in it, and the offset of its record in the changelog.
RECORD_SCHEMA = pa.schema(
    [("key", pa.string()), ("value", pa.binary()), ("event_count", pa.int64()), ("offset", pa.int64())]
)


class _RejectedError(Exception):
    """The answer has no records, and will have none."""


def stream_records(
    replica: PartitionReplica,
    read_model: str,
    version: int,
    sample: KeySample,
    wait_s: float,
    tls: ClientTls | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a partition on a node in the order of their keys, in batches with RECORD_SCHEMA.

    All records of a batch are of one commit; a later batch may be of a later one. After an interruption, the stream continues after
    the last key that was received. tls: of the connections to a node that is reached by TLS.
    Raises ReplicaUnavailableError when the node rejects the request, or sends no batch for `wait_s`.
    """
    what, path = f"{replica.name} at {replica.url}", records_path(read_model)
    query: dict[str, str | int] = {"format": ARROW, "partition": replica.partition, "version": version}
    if sample.parameter is not None:
        query["sample"] = sample.parameter
    after, waiting_since_s = "", time.monotonic()
    while True:
        try:
            target = f"{path}?{urlencode({**query, 'after': after})}"
            for batch, is_last in _request(replica.url, target, tls or ClientTls()):
                yield batch
                if is_last:
                    return
                waiting_since_s = time.monotonic()
                if len(batch):
                    after = batch.column("key")[-1].as_py()
            reason = "the stream ended early"
        except _RejectedError as error:
            raise ReplicaUnavailableError(f"{what} rejected {path}: {error}") from error
        except (OSError, HTTPException, pa.ArrowInvalid) as error:
            reason = str(error) or type(error).__name__
        if time.monotonic() - waiting_since_s > wait_s:
            raise ReplicaUnavailableError(f"{what} does not respond to {path}: {reason}")
        time.sleep(RETRY_S)


def _request(url: str, target: str, tls: ClientTls) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Yield each batch of a response, and whether it is the last one."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port
    connection = (
        HTTPSConnection(host, port, timeout=ANSWER_TIMEOUT_S, context=tls.context())
        if address.scheme == "https"
        else HTTPConnection(host, port, timeout=ANSWER_TIMEOUT_S)
    )
    with closing(connection):
        connection.request("GET", target, headers={HOP_HEADER: HOP_ANY})
        response = connection.getresponse()
        _require_stream(response)
        with pa.ipc.open_stream(response) as reader:
            for batch, metadata in reader.iter_batches_with_custom_metadata():
                yield batch, BATCH_END.encode() in (metadata or {})


def _require_stream(response: HTTPResponse) -> None:
    """Raise OSError for an answer after which the request is repeated, _RejectedError for any other without records."""
    if response.status == HTTPStatus.OK and response.getheader("Content-Type") == ARROW_TYPE:
        return
    reason = f"{response.status} {response.read(MAX_SHOWN).decode(errors='replace')}"
    if response.status in RETRIED:
        raise OSError(reason)
    raise _RejectedError(reason)
