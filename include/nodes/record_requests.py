"""How a request to a query node names records: the target, path and query, of a key's record, and a sample of keys."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, urlencode

# Clients and proxies rewrite a path with an empty segment, `.` or `..`, also in percent encoding (RFC 3986, section 6.2.2), and some
# refuse control characters in it. They leave a query as it is.
UNSAFE_IN_PATH = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class KeySample:
    """The keys whose CRC-32 modulo `buckets` equals `bucket`; with 1 bucket, all keys."""

    bucket: int = 0
    buckets: int = 1

    @property
    def parameter(self) -> str | None:
        """The value of the HTTP parameter `sample`, such as 3/100; None if no parameter is needed."""
        return f"{self.bucket}/{self.buckets}" if self.buckets > 1 else None


NO_SAMPLING = KeySample()
# The value of `format`, and the media type of the answer.
ARROW = "arrow"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
# Metadata of a batch: the changelog offset that the store had read at least, and whether it is the last one.
BATCH_POSITION, BATCH_END = "position", "end"


def records_path(read_model: str) -> str:
    """Return the path of a read model's records."""
    return f"/api/read-models/{quote(read_model, safe='')}/records"


def record_target(
    read_model: str, key: str, parameters: Mapping[str, str | int] = MappingProxyType({})
) -> str:
    """Return the target of a key's record: with the key in the path if every client and proxy leaves it there, else in the query."""
    path, given = records_path(read_model), dict(parameters)
    if UNSAFE_IN_PATH.search(key):
        given = {"key": key, **given}
    else:
        path += f"/{quote(key, safe='')}"
    return f"{path}?{urlencode(given, quote_via=quote, safe='')}" if given else path
