"""A field that hides a name which a fold uses makes another fold of it: a version is not continued with other values."""

import json
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.declarations.read_model import ReadModel, StateField
from spark_jobs.folding.fold_fingerprint import fingerprint


@pytest.mark.parametrize(
    ("order", "changes"),
    [("offset", True), ("record:offset", False), ("Seen.offset", False), ("occurredOn", False)],
)
@pytest.mark.usefixtures("lake_spark")
def test_a_field_that_hides_a_name_of_a_fold_changes_its_fingerprint(
    tmp_path: Path, order: str, changes: bool
) -> None:
    def fingerprint_with(*fields: str) -> str:
        declared = [{"name": name, "type": "long"} for name in ("id", "stars", "occurredOn", *fields)]
        folder = tmp_path / str(len(fields))
        folder.mkdir()
        (folder / "Seen.avsc").write_text(json.dumps({"type": "record", "name": "Seen", "fields": declared}))
        model = ReadModel(
            name="seen",
            source_topic="seen",
            event_types=("Seen",),
            key=lambda: col("id").cast("string"),
            state=(StateField("stars", "long"),),
            folds={1: lambda: {"stars": F.max_by("stars", order)}},
            schema_folders=(folder,),
        )
        return fingerprint(model, 1)

    assert (fingerprint_with() != fingerprint_with("offset")) is changes
