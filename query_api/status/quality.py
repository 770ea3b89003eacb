"""The section `quality`: the newest check of each read model, and up to when its stores are verified."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from include.quality import verified_stores
from include.quality.newest_checks import NewestCheck, newest_checks
from include.quality.report import URL_PATH
from query_api.status.node_view import NodeView


@dataclass(frozen=True)
class CheckEntry:
    """A check, as in NewestCheck. ended_at: in ISO 8601. report: path of its page; None if there is none."""

    passed: bool | None
    version: int | None
    mode: str
    stores: list[str]
    verdict: str
    ended_at: str
    duration_s: float
    engine: str
    engine_reason: str
    report: str | None


@dataclass(frozen=True)
class VerifiedEntry:
    """Up to when a store is verified. verified_up_to: in ISO 8601. full_age_s: time since a check that compared every key."""

    store: str
    version: int
    verified_up_to: str
    age_s: float
    full_age_s: float


@dataclass(frozen=True)
class QualityEntry:
    """A read model. last_check: None before the first one. verified: each store."""

    read_model: str
    last_check: CheckEntry | None
    verified: list[VerifiedEntry]


def read_quality(view: NodeView) -> list[QualityEntry]:
    """Return each read model."""
    home = view.settings.home
    checks = newest_checks(home, view.catalog.models)
    return [
        QualityEntry(name, _check(checks.get(name)), _verified(view, name)) for name in view.catalog.models
    ]


def _check(check: NewestCheck | None) -> CheckEntry | None:
    if check is None:
        return None
    return CheckEntry(
        check.passed,
        check.version,
        check.mode,
        list(check.stores),
        check.verdict,
        check.ended_at.isoformat(timespec="seconds"),
        check.duration_s,
        check.engine,
        check.engine_reason,
        f"{URL_PATH}{check.report}" if check.report else None,
    )


def _verified(view: NodeView, name: str) -> list[VerifiedEntry]:
    found = verified_stores.read(view.settings.home, name)
    if found is None:
        return []
    now_s = time.time()
    return [
        VerifiedEntry(
            store,
            found.version,
            datetime.fromtimestamp(mark.cut_at_s, UTC).isoformat(timespec="seconds"),
            mark.age_s(now_s),
            mark.full_age_s(now_s),
        )
        for store, mark in found.stores.items()
    ]
