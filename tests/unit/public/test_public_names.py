"""The names of the package `foldlake` and their parameters are those of the checked-in list: no name changes unnoticed."""

import inspect
from enum import Enum
from pathlib import Path

import foldlake
import foldlake.testing

LIST = Path(__file__).with_name("names.txt")


def signature(name: str) -> str:
    """Return a name with its parameters, or its members or value."""
    value = getattr(foldlake, name)
    if isinstance(value, type) and issubclass(value, Enum):
        return f"{name}: {', '.join(member.name for member in value)}"
    if not callable(value):
        return f"{name} = {value!r}"
    parameters = inspect.signature(value).parameters.values()
    shown = (one.name if one.default is one.empty else f"{one.name}=…" for one in parameters)
    return f"{name}({', '.join(shown)})"


def test_the_names_are_those_of_the_list() -> None:
    # A change that is meant: edit the list, and CHANGELOG.md.
    assert [signature(name) for name in sorted(foldlake.__all__)] == LIST.read_text(
        encoding="utf-8"
    ).splitlines()


def test_every_name_of_the_list_is_documented() -> None:
    undocumented = [
        name
        for name in foldlake.__all__
        if callable(getattr(foldlake, name)) and not inspect.getdoc(getattr(foldlake, name))
    ]
    assert undocumented == []
