"""What a version's state was folded with, kept beside its checkpoint: an edited fold must not go on from that state."""

import json

from pyspark.sql import SparkSession

from include.checkpoints import fold_rule_path
from include.read_model import ReadModel
from spark_jobs.checkpoint import read_text, write_text


def rule_text(model: ReadModel, revision: int) -> str:
    """Return the key's column and the fold's, as Spark writes them down: equal texts fold equally."""
    state = model.folds[revision]()
    types = {field.name: field.avro_type for field in model.state_fields(revision)}
    rule = {
        "key": str(model.key()),
        "state": {name: [str(column), types.get(name)] for name, column in sorted(state.items())},
    }
    return json.dumps(rule, sort_keys=True)


def why_not(spark: SparkSession, checkpoint: str, model: ReadModel, revision: int) -> str | None:
    """Return why this module's fold must not go on from a version's state; None where it may."""
    if revision not in model.folds:
        return (
            f"it was built with fold revision {revision} of {model.name}, and the module has only {sorted(model.folds)}: "
            "put it back"
        )
    kept = read_text(spark, fold_rule_path(checkpoint))
    if kept is not None and kept != rule_text(model, revision):
        return (
            f"fold revision {revision} of {model.name} is not what the state was folded with: undo the edit, and add the new "
            "fold as a new revision"
        )
    return None


def keep_rule(spark: SparkSession, checkpoint: str, model: ReadModel, revision: int) -> None:
    """Note what the state is folded with, unless it is noted already. Call it under the version's lock."""
    if read_text(spark, fold_rule_path(checkpoint)) is None:
        write_text(spark, fold_rule_path(checkpoint), rule_text(model, revision))
