"""Foldlake's public face: everything that a module of declarations imports. Other modules can change with any release."""

from include.declarations.api import Command, Location, Lookup, LookupJoin
from include.declarations.command_fields import DecimalField, IntegerField, TextField
from include.declarations.event_table import EventTable
from include.declarations.event_types.topic_events import EventFormat
from include.declarations.expiry import Expiry
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.endpoint import Endpoint, InvalidParameterError, json_object
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.kind import FlowDeclaration
from include.declarations.kinds.periodic_emission import KEY, TICK, PeriodicEmission
from include.declarations.kinds.route import Route
from include.declarations.latency import Latency
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField, decimal_type
from include.declarations.topic_options import TopicOptions
from include.declarations.windows import HoppingWindow, WindowLookup
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
