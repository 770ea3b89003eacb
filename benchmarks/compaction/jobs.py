"""The time and processor time of short compactions, each in a job, with and without the job server."""

import time
from pathlib import Path

from benchmarks.support.report import machine_busy_s
from stack.launchers.direct_submit import run
from tests.support.balance_copy import with_balance_copy
from tests.support.lake.lake_ledger import LakeLedger
from tests.support.temporary_stack import temporary_stack

MODEL = "served"
KINDS = {"each job in processes of its own": 0.0, "with the job server": 600.0}


def measure(models: Path, jobs: int, records: int) -> None:
    """Compact a table again and again, and print each job's duration and the processor time of the whole machine.

    models: an empty directory for a read model.
    """
    for kind, keep_s in KINDS.items() if jobs else ():
        print(
            f"\n{kind}: {records:,} records each\n{'compaction':>10}{'seconds':>10}{'CPU s':>8}", flush=True
        )
        with temporary_stack(("kafka", "registry"), lake_keep_session_s=keep_s) as stack:
            settings = with_balance_copy(stack, MODEL, models)
            ledger = LakeLedger(settings, MODEL)
            for number in range(1, jobs + 1):
                for key in range(records):
                    ledger.put(f"key {key}", key * number, number)
                ledger.flush()
                began_s, busy_s = time.monotonic(), machine_busy_s()
                assert run(settings, "compaction", ["--read-model", MODEL]) == 0, "a compaction failed"
                taken_s, used_s = time.monotonic() - began_s, machine_busy_s() - busy_s
                assert ledger.rows() == ledger.expected, "the table is not exact"
                print(f"{number:>10}{taken_s:>10.1f}{used_s:>8.1f}   exact", flush=True)
