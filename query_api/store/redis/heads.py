"""Reads the heads of a store's partitions."""

from collections.abc import Iterable

from query_api.store.redis.layout import HEAD, StoreKeys
from query_api.store.redis.server import Client


def read_heads(client: Client, keys: StoreKeys, partitions: Iterable[int]) -> dict[int, bytes]:
    """Return the bytes of the heads of those partitions that have one."""
    wanted = list(partitions)
    pipeline = client.pipeline(transaction=False)
    for partition in wanted:
        pipeline.hget(keys.records(partition), HEAD.decode())
    found = pipeline.execute()
    return {p: head for p, head in zip(wanted, found, strict=True) if head is not None}
