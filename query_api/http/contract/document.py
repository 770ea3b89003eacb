"""The OpenAPI document of a catalog: the same on every node, and without a node."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from tomllib import loads
from typing import Any

from include.declarations.catalog import Catalog
from include.declarations.read_model import ReadModel
from include.nodes.partition_report import PartitionReport
from include.settings import CHECKOUT
from include.versions.explanation import Explanation
from query_api.http.contract import answer_schemas, headers
from query_api.http.contract.answer_schemas import COUNT, MAYBE_TEXT, TEXT
from query_api.http.contract.built_in import built_in_operations
from query_api.http.contract.declared import appended_event, declared_operations
from query_api.http.contract.json_schema import Schema, object_schema, record_schema, state_schema
from query_api.http.contract.operations import Operation, shared_responses
from query_api.http.contract.typed_schema import typed_schema

OPENAPI = "3.1.1"
ABOUT = """Every node serves the whole API. Exact decimals are JSON numbers that keep their scale (`5.00`): parse them as decimals.

Every error is `application/problem+json` (RFC 9457): programs can rely on `type`, and `page` describes the kind of problem.
A request may have an id in `X-Request-Id`. Its answer has the same one, and so have the nodes' logs. A problem always has an id, as `requestId`.
A deprecated path, parameter or member works for at least two minor versions after the release that deprecates it."""


def operations(catalog: Catalog) -> list[Operation]:
    """Return every operation: those of declarations first."""
    return [*declared_operations(catalog), *built_in_operations(catalog.models)]


def openapi_document(catalog: Catalog, *, is_secured: bool = False) -> dict[str, Any]:
    """Return the document as JSON values. is_secured: whether callers need credentials."""
    found = operations(catalog)
    paths: dict[str, dict[str, Any]] = {}
    for one in found:
        paths.setdefault(one.path, {})[one.method] = one.openapi(is_secured=is_secured)
    return {
        "openapi": OPENAPI,
        "info": {"title": "Foldlake", "version": release(), "description": ABOUT},
        "security": [{"bearerAuth": []}] if is_secured else [{}],
        "tags": [{"name": tag} for tag in dict.fromkeys(one.tag for one in found)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearerAuth": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, or a JSON Web Token. Its scopes are `read`, `write` and `admin`.",
                }
            },
            "headers": headers.components(),
            "responses": shared_responses(is_secured=is_secured),
            "schemas": _schemas(catalog.models.values()),
        },
    }


def document_text(document: Mapping[str, Any]) -> str:
    """Return a document as text, indented."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


@cache
def release() -> str:
    """Return the version of Foldlake."""
    project = loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def _schemas(models: Iterable[ReadModel]) -> dict[str, Schema]:
    named = sorted(models, key=lambda model: model.name)
    of_models: dict[str, Schema] = {}
    for model in named:
        of_models[f"{model.name}.state"] = state_schema(model)
        of_models[f"{model.name}.record"] = record_schema(_ref(f"{model.name}.state"))
    return {
        **of_models,
        "Record": {"anyOf": [_record(model) for model in named]},
        "ModelPage": {"anyOf": [_model_page(model) for model in named]},
        "PartitionPage": {"anyOf": [_partition_page(model) for model in named]},
        "AppendedEvent": appended_event(),
        "Partition": typed_schema(PartitionReport),
        "Status": answer_schemas.status(),
        "Explanation": typed_schema(Explanation),
        "Problem": answer_schemas.problem(),
        "ProblemKind": answer_schemas.problem_kind(),
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _of(model: ReadModel) -> dict[str, Schema]:
    return {"readModel": {"const": model.name}, "version": {"type": "integer", "minimum": 1}}


def _record(model: ReadModel) -> Schema:
    return {**_ref(f"{model.name}.record"), **object_schema(_of(model))}


def _model_page(model: ReadModel) -> Schema:
    records = {"type": "array", "items": _ref(f"{model.name}.record")}
    return object_schema({**_of(model), "records": records, "next": MAYBE_TEXT})


def _partition_page(model: ReadModel) -> Schema:
    records = {"type": "array", "items": _ref(f"{model.name}.record")}
    return object_schema(
        {
            **_of(model),
            "partition": COUNT,
            "node": TEXT,
            "role": {"enum": ["owner", "standby"]},
            "total": COUNT,
            "position": COUNT,
            "records": records,
            "next": MAYBE_TEXT,
        }
    )
