"""The section `quality`: the newest check of each read model, and up to when its stores are verified."""

import time
from datetime import UTC, datetime
from typing import Any

from include.quality import verified_stores
from include.quality.newest_checks import NewestCheck, newest_checks
from include.quality.report import URL_PATH
from query_api.status.node_view import NodeView


def read_quality(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each read model: `last_check` (None before the first one), and `verified`, one entry for each store."""
    home = view.settings.home
    checks = newest_checks(home, view.catalog.models)
    return [
        {"read_model": name, "last_check": _check(checks.get(name)), "verified": _verified(view, name)}
        for name in view.catalog.models
    ]


def _check(check: NewestCheck | None) -> dict[str, Any] | None:
    if check is None:
        return None
    return {
        "passed": check.passed,
        "version": check.version,
        "mode": check.mode,
        "stores": list(check.stores),
        "verdict": check.verdict,
        "ended_at": check.ended_at.isoformat(timespec="seconds"),
        "duration_s": check.duration_s,
        "engine": check.engine,
        "engine_reason": check.engine_reason,
        "report": f"{URL_PATH}{check.report}" if check.report else None,
    }


def _verified(view: NodeView, name: str) -> list[dict[str, Any]]:
    found = verified_stores.read(view.settings.home, name)
    if found is None:
        return []
    now_s = time.time()
    return [
        {
            "store": store,
            "version": found.version,
            "verified_up_to": datetime.fromtimestamp(mark.cut_at_s, UTC).isoformat(timespec="seconds"),
            "age_s": mark.age_s(now_s),
            "full_age_s": mark.full_age_s(now_s),
        }
        for store, mark in found.stores.items()
    ]
