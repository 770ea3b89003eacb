"""Links lookups and commands with their read models, and with those that lookups are joined with."""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from include.declarations.api import Command, Location, Lookup, LookupJoin, ReadModelApi, require_fields
from include.declarations.event_types.event_schemas import event_schema
from include.declarations.kinds.endpoint import Endpoint
from include.declarations.loading.declared import Declared, DeclaredPackage
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError


def link_apis(
    declared: Declared, models: Mapping[str, ReadModel], folders: tuple[Path, ...]
) -> tuple[ReadModelApi, ...]:
    """Return the API of every read model, those without lookups and commands included, ordered by name.

    Raises ReadModelError when a lookup is joined with what does not match, or a path is declared twice.
    """
    apis = [
        _api_of(models[model.name], package, models, declared, folders)
        for package in declared.packages
        for model in package.of(ReadModel)
    ]
    _require_distinct(path for api in apis for path in api.paths)
    return tuple(sorted(apis, key=lambda api: api.model.name))


def link_endpoints(
    declared: Declared, models: Mapping[str, ReadModel], apis: Iterable[ReadModelApi]
) -> tuple[tuple[ReadModel, Endpoint], ...]:
    """Return every endpoint with its read model, ordered by path; raises ReadModelError if another declaration has its path."""
    found = [
        (models[model.name], endpoint)
        for package in declared.packages
        for model in package.of(ReadModel)
        for endpoint in package.of(Endpoint)
    ]
    _require_distinct(
        chain(
            chain.from_iterable(api.paths for api in apis),
            (endpoint.path for _, endpoint in found),
        )
    )
    return tuple(sorted(found, key=lambda one: one[1].path))


def _api_of(
    model: ReadModel,
    package: DeclaredPackage,
    models: Mapping[str, ReadModel],
    declared: Declared,
    folders: tuple[Path, ...],
) -> ReadModelApi:
    # The read model with which a lookup is joined may be left out: so is the lookup, then.
    lookups = tuple(
        one
        for one in package.of(Lookup)
        if one.join is None or one.join.read_model in models or not declared.failures
    )
    joined = {
        one.join.read_model: _joined_model(one, one.join, models) for one in lookups if one.join is not None
    }
    commands = tuple(package.of(Command))
    schemas = {command.path: event_schema(command.event_type, folders) for command in commands}
    locations = package.of(Location)
    if len(set(locations)) > 1:
        raise ReadModelError(f"{model.name} declares two locations: keep one.")
    return ReadModelApi(model, lookups, commands, schemas, joined, next(iter(locations), None))


def _require_distinct(paths: Iterable[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise ReadModelError(f"The path {path} is declared twice: rename one.")
        seen.add(path)


def _joined_model(lookup: Lookup, join: LookupJoin, models: Mapping[str, ReadModel]) -> ReadModel:
    """Return the read model with which a lookup is joined; raises ReadModelError if the join is not valid."""
    model = models.get(join.read_model)
    if model is None:
        raise ReadModelError(
            f"The lookup {lookup.path} is joined with {join.read_model!r}, which is no read model. Known read models: "
            f"{', '.join(sorted(models))}."
        )
    require_fields(lookup.path, join.fields, model)
    doubled = sorted(set(join.fields) & set(lookup.fields))
    if doubled:
        raise ReadModelError(
            f"The lookup {lookup.path} returns {doubled[0]} twice: once of its own state, once of {model.name}. Leave one out."
        )
    return model
