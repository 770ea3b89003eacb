"""Declarations of a catalog by name, for tests of one of them."""

from include.declarations.catalog import Catalog
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.periodic_emission import PeriodicEmission


def flows(catalog: Catalog) -> dict[str, Flow]:
    """Return the flows by name; that of a version after the first ends in `.v<version>`."""
    return {flow.versioned_name: flow for flow in catalog.flows}


def emissions(catalog: Catalog) -> dict[str, Emission]:
    """Return the emissions by name."""
    return {one.name: one for one in catalog.outputs_of(Emission)}


def periodic_emissions(catalog: Catalog) -> dict[str, PeriodicEmission]:
    """Return the periodic emissions by name."""
    return {one.name: one for one in catalog.outputs_of(PeriodicEmission)}
