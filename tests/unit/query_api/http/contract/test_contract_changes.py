"""The contract of the demo's read models is that of the checked-in document: it does not change unnoticed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from include.declarations.catalog import Catalog
from query_api.http.contract.document import document_text, openapi_document
from tests.support.contract import SYSTEMS, demo_catalog, difference

ACCEPTED = Path(__file__).with_name("demo.json")
HOW_TO_ACCEPT = (
    "The contract of the HTTP API has changed. If that is meant, and clients of the last release still work, accept it with "
    f"FOLDLAKE_SYSTEMS={','.join(SYSTEMS)} ./foldlake openapi --output {{path}}, and describe it in CHANGELOG.md. "
    "A renamed or removed parameter, field or path is deprecated first (docs/api.md, Deprecations)."
)


def accepted() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ACCEPTED.read_text(encoding="utf-8"))
    return found


def test_the_contract_is_the_accepted_one() -> None:
    changed = difference(accepted(), openapi_document(demo_catalog()))

    message = HOW_TO_ACCEPT.format(path=Path(*ACCEPTED.parts[-6:]))
    assert not changed, "\n".join((message, *changed))
    assert ACCEPTED.read_text(encoding="utf-8") == document_text(accepted()), message


def renamed(catalog: Catalog, old: str, new: str) -> Catalog:
    """Return the catalog with another name for a field of the balance and of its lookup."""
    apis = []
    for api in catalog.apis:
        state = tuple(replace(field, name=new) if field.name == old else field for field in api.model.state)
        lookups = tuple(
            replace(one, fields=tuple(new if name == old else name for name in one.fields))
            for one in api.lookups
        )
        is_changed = api.model.name == "balance"
        apis.append(
            replace(api, model=replace(api.model, state=state), lookups=lookups) if is_changed else api
        )
    models = {api.model.name: api.model for api in apis}
    return replace(catalog, apis=tuple(apis), models=models)


def test_a_renamed_field_is_a_difference_that_names_it() -> None:
    catalog = demo_catalog()
    before = openapi_document(catalog)

    changed = difference(before, openapi_document(renamed(catalog, "amount", "total")))

    lookup = "paths > /api/customers.getBalance > get > responses > 200 > content > application/json > schema"
    assert f'-{lookup} > properties > amount > format = "decimal"' in changed
    assert f'+{lookup} > properties > total > format = "decimal"' in changed
    assert all("balance" in line or "amount" in line or "total" in line for line in changed), changed


def test_an_inserted_parameter_is_the_only_difference() -> None:
    before = {"parameters": [{"name": "a", "in": "query"}, {"name": "c", "in": "query"}]}
    after = {
        "parameters": [
            {"name": "a", "in": "query"},
            {"name": "b", "in": "query"},
            {"name": "c", "in": "query"},
        ]
    }

    assert difference(before, after) == ['+parameters[b] > name = "b"', '+parameters[b] > in = "query"']
