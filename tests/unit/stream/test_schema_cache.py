"""The unknown schema ids that an error of Spark names."""

import pytest

from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID
from include.kafka.wire_format import header
from spark_jobs.folding.schema_cache import named_headers


def raised(*headers: bytes) -> str:
    """Return an error as Spark reports it, once as a whole and once as its cause."""
    names = [
        f"[USER_RAISED_EXCEPTION] {UNKNOWN_SCHEMA_ID}={found.hex().upper()} SQLSTATE: P0001"
        for found in headers
    ]
    return "Job aborted due to stage failure: " + "\nCaused by: ".join(names)


@pytest.mark.parametrize("ids", [(9,), (9, 9), (0, 900_001, 2**32 - 1)])
def test_the_ids_that_an_error_names_are_found(ids: tuple[int, ...]) -> None:
    assert named_headers(raised(*map(header, ids))) == set(map(header, ids))


@pytest.mark.parametrize(
    "error",
    [
        "",
        "Job aborted due to stage failure",
        UNKNOWN_SCHEMA_ID,
        f"{UNKNOWN_SCHEMA_ID}=00000009",
        raised(header(9) + b"x"),
    ],
)
def test_an_error_that_names_no_id_yields_none(error: str) -> None:
    assert named_headers(error) == set()
