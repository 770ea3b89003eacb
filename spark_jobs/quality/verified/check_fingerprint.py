"""What verified records are based on: the read model's fold and merge, and its source topic."""

import logging
from dataclasses import dataclass

from include.kafka.topic_state import topic_state
from spark_jobs.folding.fold_fingerprint import merge_fingerprint
from spark_jobs.folding.fold_query import merge_columns
from spark_jobs.quality.stores.base import Target

LOG = logging.getLogger("foldlake.quality")


@dataclass(frozen=True)
class CheckFingerprint:
    """The fingerprint of key, fold and merge, and Kafka's id of the source topic; records of another basis are not used."""

    fold: str
    topic_id: str


def basis_of(target: Target) -> CheckFingerprint | None:
    """Return the basis of a version's verified records; None if its fold revision has no merge, or one that cannot be built."""
    model, revision = target.model, target.version.fold_revision
    if model.merge(revision) is None:
        return None
    try:
        merge_columns(model, revision)
        fold = merge_fingerprint(model, revision)
    except Exception as error:  # noqa: BLE001 - a module's function can raise anything, and full checks do not need it
        LOG.warning(
            "merge %d of %s cannot be built, every check is a full one: %s", revision, model.name, error
        )
        return None
    topic = topic_state(target.settings.kafka.bootstrap_servers, model.source_topic)
    return None if topic is None else CheckFingerprint(fold, topic.topic_id)
