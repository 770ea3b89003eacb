"""The operator's override of declared latencies: FOLDLAKE_STREAM_BATCH_MODE names what runs in batches, whatever it declares.

An entry is the name of a read model, a route or another flow, or, of a read model, `<name>:<interval in ms>`, which replaces its `emit_every`.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from include.declarations.catalog import Catalog
from include.declarations.kinds.flow import Flow
from include.declarations.latency import Latency
from include.declarations.load import load_catalog, read_model
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError
from include.settings import Settings

VARIABLE = "FOLDLAKE_STREAM_BATCH_MODE"


def stream_catalog(settings: Settings) -> Catalog:
    """Return all declarations with their effective latencies; raises ReadModelError for one that is not valid, or a name that is unknown."""
    return _overridden(load_catalog(settings.declaration_folders), settings.stream.batch_mode)


def reload_for_stream(name: str, settings: Settings) -> ReadModel:
    """Return one read model, imported again, with its effective latency; raises UnknownReadModelError when none has this name."""
    model = read_model(name, settings.declaration_folders, reload=True)
    return _model_in_batches(model, _intervals(settings.stream.batch_mode))


def _intervals(entries: Collection[str]) -> dict[str, timedelta | None]:
    """Return name -> interval of its batches; None for the interval of all batches."""
    found: dict[str, timedelta | None] = {}
    for entry in entries:
        name, _, interval_ms = entry.partition(":")
        if interval_ms and not interval_ms.isdecimal():
            raise ReadModelError(
                f"{VARIABLE} has {entry!r}: after the colon, give the interval in milliseconds."
            )
        found[name] = timedelta(milliseconds=int(interval_ms)) if interval_ms else None
    return found


def _model_in_batches(model: ReadModel, intervals: Mapping[str, timedelta | None]) -> ReadModel:
    if model.name not in intervals:
        return model
    return replace(model, latency=Latency.SECOND, emit_every=intervals[model.name] or model.emit_every)


def _overridden(catalog: Catalog, entries: Collection[str]) -> Catalog:
    in_batches = _intervals(entries)
    _require_known(catalog, in_batches)
    if not in_batches:
        return catalog
    for name in sorted(
        name for name, interval in in_batches.items() if interval and name not in catalog.models
    ):
        raise ReadModelError(f"{VARIABLE} gives {name!r} an interval: only a read model has one. Remove it.")
    models = {name: _model_in_batches(model, in_batches) for name, model in catalog.models.items()}
    flows = tuple(
        _flow_in_batches(flow) if flow.declared_name in in_batches else flow for flow in catalog.flows
    )
    return replace(catalog, models=models, flows=flows)


def _flow_in_batches(flow: Flow) -> Flow:
    if flow.state is not None:
        raise ReadModelError(
            f"{VARIABLE} names {flow}, which has a state: it is always in real time. Remove it."
        )
    return replace(flow, latency=Latency.SECOND)


def _require_known(catalog: Catalog, names: Collection[str]) -> None:
    known = {*catalog.models, *(flow.declared_name for flow in catalog.flows)}
    derived = {flow.name: flow.of_read_model for flow in catalog.flows if flow.of_read_model}
    for name in sorted(set(names) - known):
        if (output := catalog.outputs.get(name)) is not None:
            raise ReadModelError(f"{VARIABLE} names the {output.kind} {name!r}: {output.when}. Remove it.")
        if name in derived:
            raise ReadModelError(
                f"{VARIABLE} names {name!r}, which is derived from read model {derived[name]} and follows it: name {derived[name]}."
            )
        raise ReadModelError(
            f"{VARIABLE} names {name!r}, which is no route and no read model. Known ones: {', '.join(sorted(known))}."
        )
