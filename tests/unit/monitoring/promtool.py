"""Prometheus' own tool, which evaluates the rules in tests."""

import json
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from include.files import file_lock
from include.settings import CHECKOUT, Settings
from tests.unit.monitoring.exported import Key

MONITORING = CHECKOUT / "deploy" / "monitoring"
RULES = MONITORING / "foldlake.rules.yaml"
PACKAGE = "prometheus"
DOWNLOAD_TIMEOUT_S = 180
needs_promtool = pytest.mark.usefixtures("promtool_or_skip")


@cache
def binary() -> Path | None:
    """Return promtool: that on the PATH, or the one in Debian's package, which is downloaded once into the tools; None for neither."""
    if found := shutil.which("promtool"):
        return Path(found)
    folder = Settings.of().tools / "promtool"
    path = folder / "usr" / "bin" / "promtool"
    with file_lock(folder / "lock", wait_s=4 * DOWNLOAD_TIMEOUT_S):
        if not path.exists():
            with suppress(OSError, subprocess.SubprocessError):
                _download(folder)
    return path if path.exists() else None


def _download(folder: Path) -> None:
    """Take promtool out of Debian's package, without installing that."""
    for command in (["apt-get", "--quiet", "update"], ["apt-get", "--quiet", "download", PACKAGE]):
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=DOWNLOAD_TIMEOUT_S)
    (package,) = folder.glob(f"{PACKAGE}_*.deb")
    unpacked = folder / "unpacked"
    subprocess.run(["dpkg-deb", "--extract", package, unpacked], check=True, timeout=DOWNLOAD_TIMEOUT_S)
    (folder / "usr" / "bin").mkdir(parents=True, exist_ok=True)
    (unpacked / "usr" / "bin" / "promtool").rename(folder / "usr" / "bin" / "promtool")
    shutil.rmtree(unpacked)
    package.unlink()


def promtool(*arguments: str | Path) -> None:
    """Run promtool, and fail with what it prints if it fails."""
    found = binary()
    assert found is not None
    done = subprocess.run(
        [found, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def series(key: Key, values: str) -> dict[str, str]:
    """Return an input series of a test of promtool; values: in its notation, such as `0+5x60`."""
    name, labels = key
    return {
        "series": f"{name}{{{','.join(f'{label}={json.dumps(value)}' for label, value in labels)}}}",
        "values": values,
    }


@dataclass(frozen=True)
class RuleTest:
    """Series with a value each interval, and the alerts that fire at a time: exactly these."""

    name: str
    input_series: Sequence[Mapping[str, str]]
    at: str
    firing: Collection[str]


def run_rules(folder: Path, tests: Iterable[RuleTest], interval: str = "1m") -> None:
    """Let promtool evaluate the rules, once each interval; all tests in one process, because its start takes longest."""
    document = {
        "rule_files": [str(RULES)],
        "evaluation_interval": interval,
        "tests": [
            {
                "name": test.name,
                "interval": interval,
                "input_series": test.input_series,
                "promql_expr_test": [
                    {
                        "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                        "eval_time": test.at,
                        "exp_samples": [
                            {"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(test.firing)
                        ],
                    }
                ],
            }
            for test in tests
        ],
    }
    path = folder / "test.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    promtool("test", "rules", path)
