"""The partition of a key, the standbys of a partition, and the order in which nodes are tried."""

from collections.abc import Iterable, Mapping
from zlib import crc32

from confluent_kafka import murmur2


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, computed like Kafka's Java client: murmur2(key) % partitions."""
    return int(murmur2(key, partitions))


def standbys_of(
    topic: str, partition: int, owner: str | None, nodes: Iterable[str], replicas: int
) -> tuple[str, ...]:
    """Return the URLs of a partition's standbys; equal on all nodes with the same membership.

    Highest random weight: when a node joins or leaves, only the partitions that it is a standby for move.
    Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998.
    """
    others = sorted(node for node in nodes if node != owner)
    ranked = sorted(others, key=lambda node: crc32(f"{topic}/{partition}/{node}".encode()), reverse=True)
    return tuple(ranked[:replicas])


def standby_table(
    topic: str, partitions: int, owners: Mapping[int, str], nodes: Iterable[str], replicas: int
) -> dict[int, tuple[str, ...]]:
    """Return the standbys of every partition of a topic."""
    known = sorted(nodes)
    return {p: standbys_of(topic, p, owners.get(p), known, replicas) for p in range(partitions)}


def candidates(owner: str | None, standbys: Iterable[str], nodes: Iterable[str]) -> tuple[str, ...]:
    """Return the URLs to try for a key, in order: the owner, the standbys, then all other nodes.

    Another node may still store a partition that it owned until recently.
    """
    ordered = [owner] if owner else []
    ordered += [url for url in standbys if url not in ordered]
    ordered += [url for url in sorted(nodes) if url not in ordered]
    return tuple(ordered)
