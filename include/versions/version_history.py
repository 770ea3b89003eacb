"""Which ended versions the registry keeps. Pure functions of a record."""

from collections.abc import Collection
from dataclasses import replace

from include.versions.version_record import ENDED_STAGES, ReadModelVersions


def ended_before_newest(record: ReadModelVersions, kept: int) -> list[int]:
    """Return the numbers of the retired and abandoned versions except the newest `kept`, and except the record's last version.

    The last version stays because the next number is derived from it.
    """
    last = max(v.number for v in record.versions)
    ended = sorted(v.number for v in record.versions if v.stage in ENDED_STAGES and v.number != last)
    return ended[: max(0, len(ended) - kept)]


def forget(record: ReadModelVersions, numbers: Collection[int]) -> ReadModelVersions:
    """Remove these versions from the record if they have ended; the same object if there is none to remove."""
    last = max(v.number for v in record.versions)
    left = tuple(
        v
        for v in record.versions
        if v.number not in numbers or v.stage not in ENDED_STAGES or v.number == last
    )
    return record if len(left) == len(record.versions) else replace(record, versions=left)
