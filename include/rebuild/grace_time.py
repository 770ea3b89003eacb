"""How much of a previous version's grace time is left: counted on this machine, not read from its wall clock.

Airflow's tasks are short and run in processes of their own, so the time that they have counted is in a file. It can be less than
the time that has passed: a machine that is off counts nothing, and another machine or a lost file begins again. It is never more,
so a version is retired late rather than early.
"""

import json
import math
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from include.boot_clock import boot_id, boot_s
from include.files import file_lock, write_atomically
from include.unknown_fields import ignore_unknown_fields
from include.versions.version_record import Version

LOCK_WAIT_S = 10.0


@dataclass(frozen=True)
class _Count:
    """The time counted since a version was replaced in a revision of its record.

    boot_id, at_boot_s: the boot of the machine and its clock when this was last counted.
    """

    replaced_in: int
    counted_s: float
    boot_id: str
    at_boot_s: float

    def go_on(self) -> "_Count":
        """Return the count up to now; after a restart of the machine, the time that it was off is not counted."""
        now_s = boot_s()
        is_same_boot = self.boot_id == boot_id() and self.at_boot_s <= now_s
        passed_s = now_s - self.at_boot_s if is_same_boot else now_s
        return _Count(self.replaced_in, self.counted_s + passed_s, boot_id(), now_s)


def grace_left_s(home: Path, read_model: str, version: Version) -> float:
    """Return the seconds until a previous version may be retired; 0 or less when it is due.

    The first call for a version begins to count. A version that an earlier release replaced is due at the time in its record; one
    without a time is never due.
    """
    if version.grace_s is None:
        if not version.retire_after:
            return math.inf
        return (datetime.fromisoformat(version.retire_after) - datetime.now(UTC)).total_seconds()
    path = home / "rebuild" / "grace-times.json"
    name = f"{read_model}/{version.number}"
    with file_lock(path.with_suffix(".lock"), wait_s=LOCK_WAIT_S):
        counts = _read(path)
        count = counts.get(name)
        if count is None or count.replaced_in != version.replaced_in:
            count = _Count(version.replaced_in, 0.0, boot_id(), boot_s())
        counts[name] = count.go_on()
        write_atomically(path, json.dumps({key: asdict(value) for key, value in counts.items()}))
    return version.grace_s - counts[name].counted_s


def _read(path: Path) -> dict[str, _Count]:
    """Return what was counted; nothing when the file is missing or unreadable: counting begins again."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {name: _Count(**ignore_unknown_fields(_Count, fields)) for name, fields in stored.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
