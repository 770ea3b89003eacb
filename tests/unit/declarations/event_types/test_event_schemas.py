"""The schema of an event type is found in any read model's folder, and must be unique."""

from pathlib import Path

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.errors import SchemaError
from include.read_models.balance.events import SCHEMAS

TEXT = '{"type": "record", "name": "Scanned", "fields": []}'


@pytest.mark.parametrize("place", ["Scanned.avsc", "schemas/Scanned.avsc", "parcels/schemas/Scanned.avsc"])
def test_schema_is_found_in_the_folder_of_additional_read_models(tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text(TEXT)

    assert event_schema("Scanned", (tmp_path,)).name == "Scanned"
    with pytest.raises(SchemaError, match=r"no schema of event type Scanned"):
        event_schema("Scanned")


def test_schemas_with_the_same_name_must_not_differ(tmp_path: Path) -> None:
    copy = tmp_path / "FundsAdded.avsc"
    copy.write_bytes((SCHEMAS / "FundsAdded.avsc").read_bytes())
    assert event_schema("FundsAdded", (tmp_path,)).full_name == "foldlake.events.FundsAdded"

    copy.write_text(TEXT.replace("Scanned", "FundsAdded"))
    with pytest.raises(SchemaError, match=r"FundsAdded has different schemas in .* and "):
        event_schema("FundsAdded", (tmp_path,))


def test_file_and_record_must_have_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "Other.avsc").write_text(TEXT)
    with pytest.raises(SchemaError, match=r"Other\.avsc has a record named Scanned"):
        event_schema("Other", (tmp_path,))
