"""The fingerprint of a version's fold, stored beside its checkpoint so that an edited fold never continues from its state."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict

from pyspark.sql import SparkSession

from include.declarations.event_types.event_columns import TIMESTAMP, hidden_columns
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError
from include.stream.checkpoints import fold_rule_path, fold_sums_path
from spark_jobs.folding.expressions.columns import expression_text, field_texts
from spark_jobs.folding.key_columns import require_entity_key
from spark_jobs.runtime.checkpoint import offsets_json, read_text, write_text

EXACT = "exact"
# Neither a part of a name that nothing hides, nor a field of a record.
WORD = re.compile(r"(?<![\w:.])\w+")


def fingerprint(model: ReadModel, revision: int) -> str:
    """Return the columns of key and fold as Spark prints them: folds with the same text compute the same state.

    Raises whatever the read model's own functions raise.
    """
    state = field_texts(model.folds[revision])
    types = {field.name: field.avro_type for field in model.state_fields(revision)}
    rule: dict[str, object] = {
        "key": expression_text(model.key),
        "state": {name: [text, types.get(name)] for name, text in state.items()},
    }
    if model.ended is not None:
        rule["ended"] = [expression_text(model.ended), asdict(model.lifetime) if model.lifetime else None]
    # With a lifetime, the state is grouped by that, and the expiry affects no state.
    if model.expires is not None and model.lifetime is None:
        rule["expires"] = [model.expires.time, model.expires.field]
    ended = [] if model.ended is None else [expression_text(model.ended)]
    hidden = _hidden(model, [expression_text(model.key), *state.values(), *ended])
    if hidden:
        rule["hidden"] = hidden
    return json.dumps(rule, sort_keys=True)


def _hidden(model: ReadModel, texts: Iterable[str]) -> list[str]:
    """Return the internal columns whose short name is in these texts, but means something else.

    A field that is added to the events, or that another event type lacks, can give a name another meaning: `offset`, for example.
    """
    words = {word.casefold() for text in texts for word in WORD.findall(text)}
    has_time = any(schema.lifetime is not None for schema in model.event_schemas)
    return [
        name
        for name in hidden_columns(model.event_schemas)
        if name.partition(":")[2].casefold() in words and (has_time or name != TIMESTAMP)
    ]


def merge_fingerprint(model: ReadModel, revision: int) -> str:
    """Return a fingerprint of key, fold and merge: records merged by the same ones can be merged further."""
    merge = model.merge(revision)
    assert merge is not None  # noqa: S101 - the caller has checked it
    rule = f"{fingerprint(model, revision)} {json.dumps(field_texts(merge), sort_keys=True)}"
    return hashlib.sha256(rule.encode()).hexdigest()


def incompatibility(spark: SparkSession, checkpoint: str, model: ReadModel, revision: int) -> str | None:
    """Return why the module's fold must not continue from a version's state, or must not run at all; None if it may run."""
    if revision not in model.folds:
        return (
            f"it was built with fold revision {revision} of {model.name}, and the module has only {sorted(model.folds)}: "
            "put it back"
        )
    stored = read_text(spark, fold_rule_path(checkpoint))
    try:
        current = fingerprint(model, revision)
        if stored is None:
            # Otherwise the key is the one that was checked when it was stored, or the fold is refused below.
            require_entity_key(spark, model)
    except ReadModelError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a module's function can raise anything: the other versions must continue
        # After the first line, Spark's messages contain the whole plan.
        message = str(error).partition("\n")[0]
        return (
            f"fold revision {revision} of {model.name} cannot be built ({type(error).__name__}: {message}): correct the module "
            "or the code that it uses"
        )
    if stored is not None and stored != current:
        return (
            f"fold revision {revision} of {model.name} is not what the state was folded with: undo the edit, and add the new "
            "fold as a new revision"
        )
    return None


def store_fingerprint(spark: SparkSession, checkpoint: str, model: ReadModel, revision: int) -> None:
    """Store the fold's fingerprint, and that its sums are exact, unless one is stored already. The caller must hold the version's lock."""
    if read_text(spark, fold_rule_path(checkpoint)) is not None:
        return
    # A state that an old release made, before it stored fingerprints, has other sums.
    if offsets_json(spark, checkpoint) is None:
        write_text(spark, fold_sums_path(checkpoint), EXACT)
    write_text(spark, fold_rule_path(checkpoint), fingerprint(model, revision))


def has_exact_sums(spark: SparkSession, checkpoint: str) -> bool:
    """Return whether the state of a checkpoint has the parts of exact sums, as all have that this release made."""
    return read_text(spark, fold_sums_path(checkpoint)) == EXACT
