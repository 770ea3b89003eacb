"""PySpark's functions look up their class and method in the JVM once. A fake replaces the JVM, and counts the requests."""

import pytest

from spark_jobs.runtime.session import FUNCTIONS, keep_functions


class Names:
    """Finds any name, as py4j does, and counts the requests."""

    def __init__(self, requests: list[str]) -> None:
        self._requests = requests

    def __getattr__(self, name: str) -> "Names":
        """Count a request, and return something that has names as well."""
        self._requests.append(name)
        return Names(self._requests)


@pytest.fixture
def requests() -> list[str]:
    return []


def find(jvm: Names, function: str) -> Names:
    """Find a function as PySpark does."""
    found: Names = getattr(getattr(jvm, FUNCTIONS), function)
    return found


def test_a_function_is_looked_up_once(requests: list[str]) -> None:
    jvm = Names(requests)
    keep_functions(jvm)
    keep_functions(jvm)

    found = [find(jvm, name) for name in ("col", "lit", "col", "col")]

    assert requests == [FUNCTIONS, "col", "lit"]
    assert found[0] is found[2]


def test_without_it_each_call_makes_two_requests(requests: list[str]) -> None:
    jvm = Names(requests)
    for _ in range(2):
        find(jvm, "col")

    assert requests == [FUNCTIONS, "col"] * 2
