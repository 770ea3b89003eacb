"""The expectations of stored records, one module each. A new module here adds an expectation.

A module defines one of these functions:

- `of_each_key(fields)` returns `Expectation`s, rules over the rows of the comparison. Each row is a key in one replica of a
  store, with the stored and the replayed record (columns: spark_jobs/quality/comparison.py). `fields` are the fields of a
  state record. A row that breaks the rule makes its key a failing key in the report.
- `of_stores(check)` returns `ExpectationResult`s for whole stores; none for a store to which the expectation does not apply.
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
    """Return the expectations of each key, for state records with these fields. Needs a Spark session."""
    found: list[Expectation] = []
    for module in _modules():
        of_each_key: OfEachKey | None = getattr(module, OF_EACH_KEY, None)
        if of_each_key is not None:
            found += of_each_key(fields)
    return found


def store_results(check: CheckedRecords) -> list[ExpectationResult]:
    """Return the results of the expectations of whole stores."""
    found: list[ExpectationResult] = []
    for module in _modules():
        of_stores: OfStores | None = getattr(module, OF_STORES, None)
        if of_stores is not None:
            found += of_stores(check)
    return found


@cache
def _modules() -> tuple[ModuleType, ...]:
    """Return the modules of this package in the order of their names; raises FoldlakeError if one defines no expectation."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    modules = tuple(importlib.import_module(f"{__name__}.{name}") for name in names)
    for module in modules:
        if not (hasattr(module, OF_EACH_KEY) or hasattr(module, OF_STORES)):
            raise FoldlakeError(
                f"{module.__name__} states no expectation: add a function {OF_EACH_KEY}(fields) or {OF_STORES}(check)."
            )
    return modules
