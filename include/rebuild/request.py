"""The fields of a request for a rebuild or a rollback, validated: Airflow itself accepts any field."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from include.declarations.catalog import Catalog
from include.declarations.read_model import ReadModel
from include.rebuild.comparison.thresholds import THRESHOLD_FIELDS, Thresholds, thresholds_of
from include.rebuild.errors import RequestError
from include.versions.start_rule import StartRule, StartRuleError

MAX_REASON_CHARACTERS = 500
MAX_GRACE_H = 24.0 * 365
# The fields that every rebuild has, of a read model or of all that fold a topic.
PROMOTION_FIELDS = ("approve", *THRESHOLD_FIELDS, "dry_run", "grace_hours")
READ_MODEL_FIELDS = ("read_model", "reason", "fold_revision", "start", *PROMOTION_FIELDS)
TOPIC_FIELDS = ("reason", *PROMOTION_FIELDS)


@dataclass(frozen=True)
class RebuiltTopic:
    """A topic with later versions, which routes write. newest: the last version. read_models: the names of the read models that fold it."""

    name: str
    newest: str
    read_models: tuple[str, ...]


@dataclass(frozen=True)
class RebuildRequest:
    """A valid request for a rebuild of one read model, or of all that fold a topic.

    fold_revisions: those of the new versions, by read model. approve: whether the promotion needs approval.
    grace_h: how long the replaced versions are kept for a rollback.
    source_topic: the version of their topic that the new versions fold; None: that of the live version.
    start: where the new versions start to count; None: where the live one does.
    thresholds: what may change without approval. dry_run: build and compare the versions, then abandon them.
    """

    fold_revisions: Mapping[str, int]
    reason: str
    approve: bool
    grace_h: float
    source_topic: str | None = None
    start: StartRule | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    dry_run: bool = False

    @property
    def read_models(self) -> tuple[str, ...]:
        """The names of the read models."""
        return tuple(self.fold_revisions)


@dataclass(frozen=True)
class RollbackRequest:
    """A valid request for a rollback.

    version: None means the one that was live before. force: roll back even to a version that lacks events or nodes.
    """

    read_model: str
    version: int | None
    reason: str
    force: bool = False


def rebuilt_topics(catalog: Catalog) -> dict[str, RebuiltTopic]:
    """Return the topics with later versions that read models fold, by name."""
    found: dict[str, tuple[str, ...]] = {}
    for model in catalog.models.values():
        if catalog.newest_topic(model.source_topic) != model.source_topic:
            found[model.source_topic] = (*found.get(model.source_topic, ()), model.name)
    return {name: RebuiltTopic(name, catalog.newest_topic(name), models) for name, models in found.items()}


def rebuilt_topic(catalog: Catalog, name: str) -> RebuiltTopic:
    """Return a topic with later versions; raises RequestError, which names the existing ones."""
    known = rebuilt_topics(catalog)
    if name not in known:
        raise RequestError(
            f"There is no new version of a topic {name!r} that a read model folds; allowed: {_list(known) or 'none'}. Declare a route "
            "with version=2 to it, and run ./foldlake up."
        )
    return known[name]


def rebuild_request(
    conf: Mapping[str, Any],
    models: Mapping[str, ReadModel],
    default_grace_h: float,
    topic: RebuiltTopic | None = None,
) -> RebuildRequest:
    """Check the fields of a rebuild's form; raises RequestError, which names the field and its allowed values.

    topic: build all that fold it, from its newest version, instead of the form's read model.
    """
    reject_unknown(conf, READ_MODEL_FIELDS if topic is None else TOPIC_FIELDS)
    if topic is None:
        model = _model(conf, models)
        revisions = {model.name: _fold_revision(conf, model)}
    else:
        revisions = {name: models[name].newest_fold_revision for name in topic.read_models}
    return RebuildRequest(
        revisions,
        reason_of(conf),
        is_true(conf, "approve", default=True, meaning="wait for approval"),
        grace_time_h(conf, default_grace_h),
        None if topic is None else topic.newest,
        _start(conf),
        thresholds_of(conf),
        is_true(conf, "dry_run", default=False, meaning="build and compare, then abandon"),
    )


def _fold_revision(conf: Mapping[str, Any], model: ReadModel) -> int:
    """Return the field `fold_revision`, or the newest revision if it is empty; raises RequestError."""
    revision = _number(conf, "fold_revision")
    if revision is None:
        revision = model.newest_fold_revision
    if revision not in model.folds:
        raise RequestError(
            f"Read model {model.name} has no fold revision {revision}, allowed: {_list(model.folds)}. Add it to the read model's "
            "module, or leave fold_revision empty for the newest."
        )
    return revision


def _start(conf: Mapping[str, Any]) -> StartRule | None:
    """Return the field `start`, or None if it is empty; raises RequestError."""
    value = conf.get("start")
    if value is None or value == "":
        return None
    try:
        return StartRule.parse(str(value))
    except StartRuleError as error:
        raise RequestError(str(error)) from error


def rollback_request(conf: Mapping[str, Any], models: Mapping[str, ReadModel]) -> RollbackRequest:
    """Check the fields of a rollback's form; raises RequestError."""
    reject_unknown(conf, ("read_model", "version", "reason", "force"))
    force = is_true(conf, "force", default=False, meaning="roll back whatever the version lacks")
    return RollbackRequest(_model(conf, models).name, _number(conf, "version"), reason_of(conf), force)


def reject_unknown(sent: Mapping[str, Any], allowed: Iterable[str]) -> None:
    """Raise RequestError for unknown fields, such as misspelt ones."""
    unknown = sorted(set(sent) - set(allowed))
    if unknown:
        raise RequestError(f"Unknown field: {', '.join(unknown)}. Allowed: {_list(allowed)}.")


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _model(conf: Mapping[str, Any], models: Mapping[str, ReadModel]) -> ReadModel:
    name = str(conf.get("read_model"))
    if name not in models:
        raise RequestError(f"Unknown read model {name!r}; allowed: {_list(sorted(models))}.")
    return models[name]


def reason_of(conf: Mapping[str, Any]) -> str:
    """Return the field `reason` without superfluous spaces; raises RequestError."""
    reason = conf.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise RequestError("reason is empty: give a reason; it is stored with the version.")
    if len(reason) > MAX_REASON_CHARACTERS:
        raise RequestError(
            f"reason has {len(reason)} characters; at most {MAX_REASON_CHARACTERS} are allowed. Link to the rest."
        )
    return " ".join(reason.split())


def _number(conf: Mapping[str, Any], name: str) -> int | None:
    value = conf.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RequestError(f"{name} is {value!r}; allowed: a whole number of at least 1, or empty.")
    return value


def is_true(conf: Mapping[str, Any], name: str, *, default: bool, meaning: str) -> bool:
    """Return a field that is true or false; raises RequestError. meaning: what true means."""
    value = conf.get(name, default)
    if not isinstance(value, bool):
        raise RequestError(f"{name} is {value!r}; allowed: true ({meaning}) or false.")
    return value


def grace_time_h(conf: Mapping[str, Any], default_h: float) -> float:
    """Return the field `grace_hours`, or the default if it is empty; raises RequestError."""
    value = conf.get("grace_hours")
    if value is None or value == "":
        return default_h
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestError(f"grace_hours is {value!r}; allowed: a number of hours.")
    if not 0 <= value <= MAX_GRACE_H:
        raise RequestError(f"grace_hours is {value}; allowed: 0 to {MAX_GRACE_H:.0f}.")
    return float(value)
