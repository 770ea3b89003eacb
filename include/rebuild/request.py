"""What somebody who wants a rebuild or a rollback has to say, checked: Airflow itself accepts whatever it is sent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.declarations.read_model import ReadModel
from include.rebuild.errors import RequestError

MAX_REASON_CHARACTERS = 500
MAX_GRACE_H = 24.0 * 365


@dataclass(frozen=True)
class RebuildRequest:
    """A rebuild that can be begun.

    fold_revision: of the version to be made. approve: somebody has to say yes before the promotion.
    grace_h: how long the version that is replaced is kept for a rollback.
    """

    read_model: str
    reason: str
    fold_revision: int
    approve: bool
    grace_h: float


@dataclass(frozen=True)
class RollbackRequest:
    """A rollback that can be begun; version None means the one that was live before."""

    read_model: str
    version: int | None
    reason: str


def rebuild_request(
    conf: Mapping[str, Any], models: Mapping[str, ReadModel], default_grace_h: float
) -> RebuildRequest:
    """Check the fields of a rebuild's form; raises RequestError, which names the field and what it may be."""
    _known(conf, ("read_model", "reason", "fold_revision", "approve", "grace_hours"))
    model = _model(conf, models)
    revision = _number(conf, "fold_revision")
    if revision is None:
        revision = model.newest_fold_revision
    if revision not in model.folds:
        raise RequestError(
            f"Read model {model.name} has no fold revision {revision}, only {sorted(model.folds)}: add it to its module first, "
            "or leave fold_revision empty for the newest."
        )
    approve = conf.get("approve", True)
    if not isinstance(approve, bool):
        raise RequestError(f"approve is {approve!r}: it may be true (wait for a person) or false.")
    return RebuildRequest(model.name, _reason(conf), revision, approve, _grace_h(conf, default_grace_h))


def rollback_request(conf: Mapping[str, Any], models: Mapping[str, ReadModel]) -> RollbackRequest:
    """Check the fields of a rollback's form; raises RequestError."""
    _known(conf, ("read_model", "version", "reason"))
    return RollbackRequest(_model(conf, models).name, _number(conf, "version"), _reason(conf))


def _known(conf: Mapping[str, Any], names: tuple[str, ...]) -> None:
    unknown = sorted(set(conf) - set(names))
    if unknown:
        raise RequestError(f"Unknown: {', '.join(unknown)}. There are: {', '.join(names)}.")


def _model(conf: Mapping[str, Any], models: Mapping[str, ReadModel]) -> ReadModel:
    name = str(conf.get("read_model"))
    if name not in models:
        raise RequestError(f"There is no read model {name!r}: known are {', '.join(sorted(models))}.")
    return models[name]


def _reason(conf: Mapping[str, Any]) -> str:
    reason = conf.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise RequestError("reason is empty: say why, for those who find the version later.")
    if len(reason) > MAX_REASON_CHARACTERS:
        raise RequestError(
            f"reason has {len(reason)} characters: {MAX_REASON_CHARACTERS} are allowed. Link to the rest."
        )
    return " ".join(reason.split())


def _number(conf: Mapping[str, Any], name: str) -> int | None:
    value = conf.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise RequestError(f"{name} is {value!r}: it is a whole number from 1 on, or empty.")
    return value


def _grace_h(conf: Mapping[str, Any], default_h: float) -> float:
    value = conf.get("grace_hours")
    if value is None or value == "":
        return default_h
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestError(f"grace_hours is {value!r}: it is a number of hours.")
    if not 0 <= value <= MAX_GRACE_H:
        raise RequestError(f"grace_hours is {value}: it may be 0 to {MAX_GRACE_H:.0f}.")
    return float(value)
