"""The fold that a version's state was made with, kept beside its checkpoint: an edited fold must not continue that state."""

import json
import re

from pyspark.sql import Column, SparkSession

from include.declarations.read_model import ReadModel
from include.errors import ReadModelError
from include.stream.checkpoints import fold_rule_path
from spark_jobs.folding.key_columns import require_entity_key
from spark_jobs.runtime.checkpoint import read_text, write_text

# What Spark names the variables of a function given to `transform`, `aggregate`, `filter`.
LAMBDA_VARIABLE = re.compile(r"\b([xyz])_\d+\b")


def rule_text(model: ReadModel, revision: int) -> str:
    """Return the key's column and the fold's, as Spark writes them down: equal texts fold equally.

    Raises whatever the module's own functions raise.
    """
    state = model.folds[revision]()
    types = {field.name: field.avro_type for field in model.state_fields(revision)}
    rule = {
        "key": _written(model.key()),
        "state": {name: [_written(column), types.get(name)] for name, column in sorted(state.items())},
    }
    return json.dumps(rule, sort_keys=True)


def _written(column: Column) -> str:
    """Return a column as Spark writes it down, lambda variables (`x_12`) numbered as they appear: Spark counts on and on."""
    text = str(column)
    if "->" not in text:
        return text
    numbers: dict[str, int] = {}
    return LAMBDA_VARIABLE.sub(lambda found: f"{found[1]}_{numbers.setdefault(found[0], len(numbers))}", text)


def incompatibility(spark: SparkSession, checkpoint: str, model: ReadModel, revision: int) -> str | None:
    """Return why this module's fold must not continue a version's state, or must not be run at all; None where it may."""
    if revision not in model.folds:
        return (
            f"it was built with fold revision {revision} of {model.name}, and the module has only {sorted(model.folds)}: "
            "put it back"
        )
    try:
        rule = rule_text(model, revision)
        require_entity_key(spark, model)
    except ReadModelError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a module's function raises: the other versions must keep running
        # Spark's messages have the whole plan behind their first line.
        message = str(error).partition("\n")[0]
        return (
            f"fold revision {revision} of {model.name} cannot be built ({type(error).__name__}: {message}): correct the module, "
            "or what it uses"
        )
    kept = read_text(spark, fold_rule_path(checkpoint))
    if kept is not None and kept != rule:
        return (
            f"fold revision {revision} of {model.name} is not what the state was folded with: undo the edit, and add the new "
            "fold as a new revision"
        )
    return None


def keep_rule(spark: SparkSession, checkpoint: str, model: ReadModel, revision: int) -> None:
    """Note what the state is folded with, unless it is noted already. Call it under the version's lock."""
    if read_text(spark, fold_rule_path(checkpoint)) is None:
        write_text(spark, fold_rule_path(checkpoint), rule_text(model, revision))
