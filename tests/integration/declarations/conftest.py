"""A Spark session for the results of declarations, which all tests of this folder share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from stack.declaration_testing.session import declaration_session


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """The session of a user's tests."""
    with declaration_session() as session:
        yield session
