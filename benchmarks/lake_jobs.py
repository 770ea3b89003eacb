"""Jobs of the lake: the time and processor time of short compactions, with and without the job server."""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.support.report import machine_busy_s, print_environment
from stack.launchers.direct_submit import run
from tests.support.lake.lake_ledger import LakeLedger
from tests.support.temporary_stack import temporary_stack

MODEL = "served"
DECLARATION = f"""
from dataclasses import replace
from include.read_models.balance.model import READ_MODEL as BALANCE
READ_MODEL = replace(BALANCE, name="{MODEL}")
"""


def main() -> None:
    """Compact a table again and again, each time in a job, and compare it with what was written."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=5, help="compactions of each kind (5)")
    arguments.add_argument("--records", type=int, default=500, help="records of a compaction (500)")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="foldlake-") as directory:
        models = Path(directory)
        (models / f"{MODEL}.py").write_text(DECLARATION, encoding="utf-8")
        for keep_s, kind in ((0.0, "each job in processes of its own"), (600.0, "with the job server")):
            measure(models, keep_s, kind, options.runs, options.records)


def measure(models: Path, keep_s: float, kind: str, runs: int, records: int) -> None:
    """Print the duration and the processor time, of the whole machine, of each compaction."""
    with temporary_stack(
        ("kafka", "registry"), read_models_dir=models, lake_keep_session_s=keep_s
    ) as settings:
        if not keep_s:
            print_environment(settings)
        print(f"\n{kind}: {records:,} records each\n{'compaction':>10}{'seconds':>10}{'CPU s':>8}")
        ledger = LakeLedger(settings, MODEL)
        for number in range(1, runs + 1):
            for key in range(records):
                ledger.put(f"key {key}", key * number, number)
            ledger.flush()
            began_s, busy_s = time.monotonic(), machine_busy_s()
            assert run(settings, "compaction", ["--read-model", MODEL]) == 0, "a compaction failed"
            print(f"{number:>10}{time.monotonic() - began_s:>10.1f}{machine_busy_s() - busy_s:>8.1f}")
            assert ledger.rows() == ledger.expected, "the table is not exact"


if __name__ == "__main__":
    main()
