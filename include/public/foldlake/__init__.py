"""Foldlake's public face: everything that a module of declarations imports. Other modules can change with any release."""

from include.declarations.api import Command, Lookup, LookupJoin
from include.declarations.command_fields import DecimalField, IntegerField, TextField
from include.declarations.emission import Emission
from include.declarations.event_table import EventTable
from include.declarations.event_types.event_format import EventFormat
from include.declarations.kinds.endpoint import Endpoint, InvalidParameterError, json_object
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.kind import FlowDeclaration
from include.declarations.latency import Latency
from include.declarations.lifetimes.expiry import Expiry
from include.declarations.location import Location
from include.declarations.periodic.periodic_emission import KEY, TICK, PeriodicEmission
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField, decimal_type
from include.declarations.route import Route
from include.declarations.topic_options import TopicOptions
from include.declarations.windows.hopping_window import HoppingWindow
from include.declarations.windows.window_lookup import WindowLookup
from include.settings import Placement

__all__ = [
    "KEY",
    "TICK",
    "TIMESTAMP_MILLIS",
    "Command",
    "DecimalField",
    "Emission",
    "Endpoint",
    "EventFormat",
    "EventTable",
    "Expiry",
    "Flow",
    "FlowDeclaration",
    "HoppingWindow",
    "IntegerField",
    "InvalidParameterError",
    "Latency",
    "Location",
    "Lookup",
    "LookupJoin",
    "PeriodicEmission",
    "Placement",
    "ReadModel",
    "Route",
    "StateField",
    "TextField",
    "TopicOptions",
    "WindowLookup",
    "decimal_type",
    "json_object",
]
