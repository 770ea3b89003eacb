"""The promotion of several read models in one transaction of the version registry."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

from include.rebuild.promotion import recheck_candidate, replaced_by
from include.settings import Settings
from include.versions.changes import change_together, unless_replaced
from include.versions.registry import VersionRegistry
from include.versions.transitions import promote

LOG = logging.getLogger(__name__)
# A fold of what its routes write last may appear in a commit only.
GATE_TIMEOUT_S = 180.0


def promote_together(settings: Settings, versions: Mapping[str, int], grace_h: float) -> dict[str, int]:
    """Wait at the gate of each candidate, then make all of them live; returns the versions that they replaced, by read model.

    versions: read model -> number of its candidate.

    Raises GateClosedError, QueryRefusedError, PromotionLostError, VersionChangeError: then none is live.
    """
    transitions = {}
    now = datetime.now(UTC)
    for name, number in versions.items():
        compared_with = recheck_candidate(settings, name, number, GATE_TIMEOUT_S)
        making_live = partial(
            promote, number=number, now=now, retire_live_after=now + timedelta(hours=grace_h)
        )
        # Not a candidate any more: an earlier try has promoted it, and the transition changes nothing.
        transitions[name] = (
            making_live if compared_with is None else unless_replaced(making_live, compared_with)
        )
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        records = change_together(registry, transitions)
    replaced = {name: old for name, record in records.items() if (old := replaced_by(settings, record))}
    LOG.info("live at once: %s", ", ".join(f"v{number} of {name}" for name, number in versions.items()))
    return {name: old.number for name, old in replaced.items()}
