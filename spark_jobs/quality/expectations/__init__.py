"""What is expected of stored records: one module for each expectation. A new module here is a new expectation.

A module defines one of these functions:

- `of_each_key(fields)` returns `Expectation`s, rules over the rows of the comparison: each row is a key in one replica of a
  store, with the stored and the replayed record (columns: spark_jobs/quality/comparison.py). `fields` are those of a state
  record. A row that breaks the rule makes its key a failing key of the report.
- `of_stores(check)` returns `ExpectationResult`s of the stores as a whole, none for a store that it does not concern.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType

from include.errors import FoldlakeError
from include.quality.check import ExpectationResult
from spark_jobs.quality.checked_records import CheckedRecords
from spark_jobs.quality.rules import Expectation

OF_EACH_KEY, OF_STORES = "of_each_key", "of_stores"
OfEachKey = Callable[[Sequence[str]], list[Expectation]]
OfStores = Callable[[CheckedRecords], list[ExpectationResult]]


def key_expectations(fields: Sequence[str]) -> list[Expectation]:
    """Return what is expected of each key, whose state record has these fields. Needs a Spark session."""
    found: list[Expectation] = []
    for module in _modules():
        of_each_key: OfEachKey | None = getattr(module, OF_EACH_KEY, None)
        if of_each_key is not None:
            found += of_each_key(fields)
    return found


def store_results(check: CheckedRecords) -> list[ExpectationResult]:
    """Return the results of what is expected of the stores as a whole."""
    found: list[ExpectationResult] = []
    for module in _modules():
        of_stores: OfStores | None = getattr(module, OF_STORES, None)
        if of_stores is not None:
            found += of_stores(check)
    return found


@cache
def _modules() -> tuple[ModuleType, ...]:
    """Return the modules of this package, by name; raises FoldlakeError where one states no expectation."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = tuple(importlib.import_module(f"{__name__}.{name}") for name in names)
    for module in modules:
        if not (hasattr(module, OF_EACH_KEY) or hasattr(module, OF_STORES)):
            raise FoldlakeError(
                f"{module.__name__} states no expectation: define {OF_EACH_KEY}(fields) or {OF_STORES}(check) in it."
            )
    return modules
