"""The newest check of each read model, from the JSON beside its report: for status, status page and metrics."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from include.quality.check import CheckResult
from include.quality.report import reports_directory
from include.settings import CheckEngine

ENGINE_NAMES = {CheckEngine.DUCKDB.value: "DuckDB", CheckEngine.SPARK.value: "Spark"}
# A read model whose newest check is older than so many others is not found. Checks take a tenth of the time at most, and all read
# models are checked daily: a day has fewer.
MAX_READ = 2_000


@dataclass(frozen=True)
class NewestCheck:
    """A check. passed: None if the read model cannot be checked. report: name of the HTML page; empty if there is none.

    engine, engine_reason: as in CheckResult; empty if the read model cannot be checked.
    """

    read_model: str
    version: int | None
    mode: str
    stores: tuple[str, ...]
    passed: bool | None
    verdict: str
    ended_at: datetime
    duration_s: float
    report: str
    engine: str = ""
    engine_reason: str = ""

    @property
    def engine_text(self) -> str:
        """The engine in words, `with Spark, because FOLDLAKE_CHECK_ENGINE is spark`; empty if it is unknown."""
        if not self.engine:
            return ""
        reason = f", because {self.engine_reason}" if self.engine_reason else ""
        return f"with {ENGINE_NAMES.get(self.engine, self.engine)}{reason}"


def newest_checks(
    home: Path, read_models: Iterable[str], versions: Mapping[str, int] | None = None
) -> dict[str, NewestCheck]:
    """Return the newest check of each of these read models that has one.

    versions: read model -> the version whose checks count; None: those of all versions, also of candidates.
    """
    wanted = set(read_models)
    found: dict[str, NewestCheck] = {}
    for path, modified_s in _newest_first(reports_directory(home))[:MAX_READ]:
        if wanted <= found.keys():
            break
        check = _check_at(path, modified_s)
        if check is not None and check.read_model in wanted and _counts(check, versions):
            found.setdefault(check.read_model, check)
    return found


def _counts(check: NewestCheck, versions: Mapping[str, int] | None) -> bool:
    # A check without a version is of a read model that cannot be checked, whatever its version.
    return versions is None or check.version in {None, versions[check.read_model]}


def _newest_first(directory: Path) -> list[tuple[Path, float]]:
    try:
        with os.scandir(directory) as entries:
            found = [(Path(e.path), e.stat().st_mtime) for e in entries if e.name.endswith(".json")]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda entry: entry[1], reverse=True)


@lru_cache(maxsize=2 * MAX_READ)
def _check_at(path: Path, modified_s: float) -> NewestCheck | None:
    try:
        fields = CheckResult.read(path.read_text(encoding="utf-8"))
        request = fields["request"]
        version = fields.get("version", request.get("version"))
        page = path.with_suffix(".html")
        return NewestCheck(
            read_model=str(request["read_model"]),
            version=None if version is None else int(version),
            mode=str(request["mode"]),
            stores=tuple(map(str, request["stores"])),
            passed=fields["passed"],
            verdict=str(fields["verdict"]),
            ended_at=datetime.fromtimestamp(modified_s, UTC),
            duration_s=float(fields["duration_s"]),
            report=page.name if page.exists() else "",
            engine=str(fields.get("engine", "")),
            engine_reason=str(fields.get("engine_reason", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Removed meanwhile, or written by another release.
        return None
