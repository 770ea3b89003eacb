"""The base class of lookups with a path of their own that read the records of several keys. Window lookups are one kind of them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from include.declarations.api import check_parameter, check_path, require_fields
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError

# A page of that many records takes some milliseconds, and as many requests to other nodes as they own keys of it.
MAX_RECORDS = 500
# The slug of a parameter's problem, if a kind has none of its own.
INVALID_PARAMETER = "invalid-parameter"

Texts = Mapping[str, str]
"""The JSON of each field of a record, in the order of the endpoint's fields; empty if the key has no record."""


class InvalidParameterError(FoldlakeError):
    """A request's parameter is not valid: the answer is a problem with status 400. slug: identifies the kind of problem."""

    def __init__(self, slug: str, detail: str) -> None:
        super().__init__(detail)
        self.slug = slug


class Endpoint(ABC):
    """A lookup `GET <path>?<parameter>=<text>&…` that makes its answer of records of its read model, all of one version.

    Its subclasses, usually frozen dataclasses, are the kinds; each has the two attributes. A node finds each record in its own store or on
    another node, and adds the headers for the version and the age of the oldest record.

    path: `/api/<name>.<verb>`. fields: names of fields of the state record.
    problems: the slugs of its InvalidParameterErrors, for the contract.
    """

    path: str
    fields: tuple[str, ...]
    problems: ClassVar[tuple[str, ...]] = (INVALID_PARAMETER,)

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that a request may have."""

    @property
    def deprecation(self) -> str:
        """Why clients should stop using the lookup, and what to use instead, for the contract; empty if they should not."""
        return ""

    @property
    def required_parameters(self) -> tuple[str, ...]:
        """The names of the parameters that a request must have, for the contract."""
        return ()

    def parameter_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the JSON Schema of a parameter's value by its name, for the contract, with `description` and `example`.

        By default, every parameter is a string.
        """
        return {}

    def answer_schema(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the JSON Schema of the answer, for the contract, from that of a record.

        A kind with its own `answer` describes it here; otherwise the contract describes any JSON.
        """
        if type(self).answer is not Endpoint.answer:
            return {}
        return {"type": "array", "items": record, "maxItems": MAX_RECORDS}

    @abstractmethod
    def keys(self, given: Mapping[str, str]) -> Sequence[bytes]:
        """Return the keys of the records, in UTF-8, from the request's parameters; raises InvalidParameterError."""

    def answer(self, records: Sequence[Texts]) -> str:
        """Return the JSON of the answer from the records, in the order of the keys: an array with an object for each key that has one."""
        return f"[{','.join(json_object(record) for record in records if record)}]"

    def validate_against(self, model: ReadModel) -> None:
        """Raise ReadModelError if its path or a parameter is not valid, or the read model lacks one of its fields."""
        check_path(self.path)
        for parameter in self.parameters:
            check_parameter(self.path, parameter)
        require_fields(self.path, self.fields, model)


def json_object(record: Texts) -> str:
    """Return a record as a JSON object."""
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in record.items()) + "}"
