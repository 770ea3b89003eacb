"""The fields of a request for the rebuild of everything that folds a topic, validated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from include.declarations.catalog import Catalog
from include.rebuild.comparison.thresholds import Thresholds, thresholds_of
from include.rebuild.errors import RequestError
from include.rebuild.request import (
    PROMOTION_FIELDS,
    grace_time_h,
    is_dry_run,
    is_true,
    reason_of,
    reject_unknown,
)

FIELDS = ("reason", *PROMOTION_FIELDS)


@dataclass(frozen=True)
class TopicRequest:
    """A valid request.

    topic: the topic that the read models declare. new_topic: the version of it that they are to fold. read_models: their names.
    approve, grace_h, thresholds, dry_run: as in RebuildRequest.
    """

    topic: str
    new_topic: str
    read_models: tuple[str, ...]
    reason: str
    approve: bool
    grace_h: float
    thresholds: Thresholds = field(default_factory=Thresholds)
    dry_run: bool = False


def topic_request(
    topic: str, conf: Mapping[str, Any], catalog: Catalog, default_grace_h: float
) -> TopicRequest:
    """Check the fields of the form; raises RequestError, which names the field and its allowed values."""
    reject_unknown(conf, FIELDS)
    known = rebuilt_topics(catalog)
    if topic not in known:
        raise RequestError(
            f"There is no new version of a topic {topic!r} that a read model folds; allowed: {', '.join(known) or 'none'}. Declare a route "
            "with version=2 to it, and run ./foldlake up."
        )
    approve = is_true(conf, "approve", default=True, meaning="wait for approval")
    return TopicRequest(
        topic,
        catalog.newest_topic(topic),
        known[topic],
        reason_of(conf),
        approve,
        grace_time_h(conf, default_grace_h),
        thresholds_of(conf),
        is_dry_run(conf),
    )


def rebuilt_topics(catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Return the topics of which routes write later versions, and the names of the read models that fold each."""
    found: dict[str, tuple[str, ...]] = {}
    for model in catalog.models.values():
        if catalog.newest_topic(model.source_topic) != model.source_topic:
            found[model.source_topic] = (*found.get(model.source_topic, ()), model.name)
    return found
