"""Links emissions and periodic emissions with the read models that they read, and requires that no event circulates."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.periodic_emission import HIDDEN_TICK, KEY, TICK, PeriodicEmission
from include.declarations.loading.declared import Declared
from include.declarations.loading.flows import leads_to
from include.declarations.read_model import POSITION_FIELDS, ReadModel
from include.errors import ReadModelError


def link_emissions(
    declared: Declared,
    models: Mapping[str, ReadModel],
    writers: Collection[Flow],
    folders: tuple[Path, ...],
) -> dict[str, Emission]:
    """Return every emission by name. writers: the flows.

    Raises ReadModelError when one reads a read model that does not exist, two have one name or one topic, or its output leads back to
    the read model.
    """
    emissions: dict[str, Emission] = {}
    names = {one.versioned_name for one in writers}
    for emission in declared.of(Emission):
        if emission.name in emissions or emission.name in names:
            raise ReadModelError(f"Two routes or emissions are named {emission.name!r}: rename one.")
        if _reads_left_out(emission.read_model, models, declared):
            continue
        emissions[emission.name] = replace(emission, schema_folders=folders)
    for emission in emissions.values():
        _require_valid(emission, emissions, models, writers)
    return emissions


def _require_valid(
    emission: Emission,
    emissions: Mapping[str, Emission],
    models: Mapping[str, ReadModel],
    writers: Collection[Flow],
) -> None:
    if emission.read_model not in models:
        raise ReadModelError(
            f"Emission {emission.name} reads {emission.read_model!r}, which is no read model. Known read models: "
            f"{', '.join(sorted(models))}."
        )
    read_model = models[emission.read_model]
    emission.validate_against(read_model)
    if read_model.items_leave:
        raise ReadModelError(
            f"Emission {emission.name} reads {emission.read_model}, whose items end: its state is forgotten, and events could be "
            "counted from the beginning again. Read another read model of the same topic."
        )
    topics = {name: other.output_topic for name, other in emissions.items() if other is not emission}
    topics |= {one.versioned_name: one.output_topic for one in writers}
    others = [name for name, topic in topics.items() if topic == emission.output_topic]
    if others:
        raise ReadModelError(
            f"Emission {emission.name} and {others[0]} write to {emission.output_topic}: give each a topic of its own."
        )
    source = models[emission.read_model].source_topic
    if leads_to(emission.output_topic, source, _edges(writers, emissions, models)):
        raise ReadModelError(
            f"Emission {emission.name} reads what its own output leads to: its events would circulate for ever. Write to "
            "another topic."
        )


def _edges(
    writers: Collection[Flow], emissions: Mapping[str, Emission], models: Mapping[str, ReadModel]
) -> list[tuple[str, str]]:
    """Return source and output topic of all that write topics."""
    of_emissions = [(models[one.read_model].source_topic, one.output_topic) for one in emissions.values()]
    return [*((one.source_topic, one.output_topic) for one in writers), *of_emissions]


def link_periodic_emissions(
    declared: Declared,
    models: Mapping[str, ReadModel],
    writers: Collection[Flow],
    emissions: Mapping[str, Emission],
    folders: tuple[Path, ...],
) -> dict[str, PeriodicEmission]:
    """Return every periodic emission by name. writers: the flows.

    Raises ReadModelError when one reads a read model or a field that does not exist, does not give the fields of its schema, has the name or
    the topic of another writer, or leads back to its read model.
    """
    found: dict[str, PeriodicEmission] = {}
    names = {writer.versioned_name for writer in writers}
    for one in declared.of(PeriodicEmission):
        if one.name in {*found, *names, *emissions}:
            raise ReadModelError(f"Two routes or emissions are named {one.name!r}: rename one.")
        if _reads_left_out(one.read_model, models, declared):
            continue
        found[one.name] = replace(one, schema_folders=folders)
    for one in found.values():
        others = [other.output_topic for other in found.values() if other is not one]
        others += [writer.output_topic for writer in writers]
        others += [emission.output_topic for emission in emissions.values()]
        _require_own_topic(one, others)
        if one.read_model not in models:
            raise ReadModelError(
                f"Periodic emission {one.name} reads {one.read_model!r}, which is no read model. Known read models: "
                f"{', '.join(sorted(models))}."
            )
        _require_fields(one, models[one.read_model])
        source = models[one.read_model].source_topic
        if leads_to(one.output_topic, source, _edges(writers, emissions, models)):
            raise ReadModelError(
                f"Periodic emission {one.name} reads what its own output leads to: its events would circulate for ever. Write to "
                "another topic."
            )
    return found


def _require_own_topic(one: PeriodicEmission, others: Collection[str]) -> None:
    if one.output_topic in others:
        raise ReadModelError(
            f"Periodic emission {one.name} writes to {one.output_topic}, and so does another declaration: give each a topic of its own."
        )


def _require_fields(one: PeriodicEmission, model: ReadModel) -> None:
    schema = one.output_schema
    if sorted(one.fields) != sorted(schema.fields):
        raise ReadModelError(
            f"Periodic emission {one.name} gives {sorted(one.fields)}, but {schema.full_name} has {sorted(schema.fields)}."
        )
    # Every version must have what is written: a field that an older fold lacks could not be.
    known = {KEY, TICK, HIDDEN_TICK, *(state.name for state in (*model.state, *POSITION_FIELDS))}
    unknown = sorted(set(one.fields.values()) - known)
    if unknown:
        raise ReadModelError(
            f"Periodic emission {one.name} writes {unknown[0]}, which {model.name} does not have: use {KEY}, {TICK}, or a field of its state."
        )


def _reads_left_out(read_model: str, models: Mapping[str, ReadModel], declared: Declared) -> bool:
    """Return whether the read model that a declaration reads may be one of a module that is left out: so is the declaration, then."""
    return read_model not in models and bool(declared.failures)
