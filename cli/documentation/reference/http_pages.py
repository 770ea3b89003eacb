"""The pages of the HTTP API: its paths, from the contract, and the kinds of problems."""

import re
from collections.abc import Iterator
from typing import Any

from cli.documentation.reference.markdown import code, codes, page, sentence, table
from include.declarations.load import load_catalog
from query_api.http.contract.document import openapi_document
from query_api.http.problem_kinds import KINDS, ProblemKind

ABOUT = """Every query node serves these paths: node 1 of the embedded stack on port 5051. [The API of a query node](../api.md) shows requests
and answers. `/openapi.json` describes them for programs, with the schema of each answer.

The lookup and the commands are those of the read model `balance`: each read model [declares its own](../how-to/lookups-and-commands.md)."""
ABOUT_PROBLEMS = """Every error is `application/problem+json` (RFC 9457). Programs can rely on `type`, which is `urn:foldlake:problem:` and the slug.
A node describes each kind at `/problems/<slug>`. In a slug, `{parameter}` is a parameter's name in lower case with dashes.

A response with `Retry-After` can succeed later; of the kinds with *retry*, the same request may succeed."""
SLUG = re.compile(r"^- `([^`]+)`", re.MULTILINE)


def http_page() -> str:
    """Return the page of paths, those of `balance` among them."""
    document = openapi_document(load_catalog(()))
    sections: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found = _operation(method, path, operation, document["components"])
            sections.setdefault(operation["tags"][0], []).append(found)
    return page(
        "HTTP paths",
        ABOUT,
        *("\n\n".join([f"## {tag}", *found]) for tag, found in sections.items()),
        "\n\n".join(["## Headers", _headers(document["components"]["headers"])]),
    )


def problems_page() -> str:
    """Return the page of problems."""
    columns = ("Slug", "Status", "Cause", "What to do", "Retry")
    return page("Problems", ABOUT_PROBLEMS, table(columns, map(_problem, KINDS)))


def _problem(kind: ProblemKind) -> tuple[str, str, str, str, str]:
    statuses = ", ".join(map(str, kind.statuses)) or "any"
    return code(kind.slug), statuses, kind.meaning, kind.remedy, "retry" if kind.may_retry else ""


def _operation(method: str, path: str, operation: dict[str, Any], components: dict[str, Any]) -> str:
    parts = [
        f"### {method.upper()} {path}",
        " ".join(sentence(operation[name]) for name in ("summary", "description") if operation.get(name)),
        table(("Parameter", "In", "Type", "Meaning"), map(_parameter, operation.get("parameters", ()))),
        *_body(operation),
        table(("Status", "Answer"), _answers(operation["responses"], components)),
    ]
    return "\n\n".join(part for part in parts if part)


def _parameter(one: dict[str, Any]) -> tuple[str, str, str, str]:
    about = one.get("description", "")
    return (
        code(one["name"]) + (", required" if one.get("required") else ""),
        one["in"],
        _type(one["schema"]),
        about,
    )


def _body(operation: dict[str, Any]) -> Iterator[str]:
    if "requestBody" not in operation:
        return
    content = operation["requestBody"]["content"]["application/json"]
    schema = content["schema"]
    required = schema.get("required", ())
    rows = [
        (code(name) + (", required" if name in required else ""), _type(one), one.get("description", ""))
        for name, one in schema["properties"].items()
    ]
    yield table(("Field of the body", "Type", "Meaning"), rows)


def _type(schema: dict[str, Any]) -> str:
    """Return a schema's type with its limits, on one line."""
    if "enum" in schema and "balance" not in schema["enum"]:
        return codes(schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    types = schema.get("type", "any")
    shown = " or ".join(types) if isinstance(types, list) else types
    low, high = schema.get("minimum"), schema.get("maximum")
    limits = f", {low} to {high}" if low is not None and high is not None and high < 2**31 else ""
    default = f", default {code(schema['default'])}" if "default" in schema else ""
    return f"{shown}{limits}{default}"


def _answers(responses: dict[str, Any], components: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for status, response in responses.items():
        shared = response.get("$ref", "").rpartition("/")[2]
        found = components["responses"][shared] if shared else response
        slugs = SLUG.findall(found["description"])
        headers = codes(name.removesuffix("-optional") for name in found.get("headers", ()))
        text = codes(slugs) if slugs else found["description"]
        types = codes(found.get("content", ())) if not slugs else ""
        extra = [f"Type: {types}." if types else "", f"Headers: {headers}." if headers else ""]
        yield (
            status,
            " ".join([sentence(text) if not slugs else text, *filter(None, extra if not slugs else [])]),
        )


def _headers(headers: dict[str, Any]) -> str:
    found: dict[str, str] = {}
    for name, header in headers.items():
        found.setdefault(name.removesuffix("-optional"), header["description"])
    return table(("Header of an answer", "Meaning"), [(code(name), about) for name, about in found.items()])
