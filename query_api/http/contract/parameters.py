"""The parameters of the built-in paths, with their limits: routes accept exactly these, and the OpenAPI document lists them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from include.declarations.api import DECIMALS_PARAMETER
from include.nodes.field_names import FIELD_NAMES_PARAMETER, FieldNames
from query_api.http.contract.json_schema import INT64_MAX

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
# Of versions and partitions.
MAX_DIGITS = 9
MAX_NUMBER = 10**MAX_DIGITS
DATE_TIME = {"type": "string", "format": "date-time"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a path.

    schema: of its value, in JSON Schema. location: `query`, `path` or `header`. is_deprecated: whether clients should stop using it.
    """

    name: str
    schema: Mapping[str, Any]
    description: str
    example: Any = None
    is_required: bool = False
    location: str = "query"
    is_deprecated: bool = False

    def openapi(self) -> dict[str, Any]:
        """Return its Parameter Object."""
        found: dict[str, Any] = {"name": self.name, "in": self.location, "description": self.description}
        if self.is_required:
            found["required"] = True
        if self.is_deprecated:
            found["deprecated"] = True
        if self.name == PREFIX_OF_BOX:
            # Commas separate the numbers, and stay as they are.
            found["allowReserved"] = True
        found["schema"] = dict(self.schema)
        return found if self.example is None else {**found, "example": self.example}


def names(parameters: Iterable[Parameter]) -> frozenset[str]:
    """Return the names of query parameters."""
    return frozenset(one.name for one in parameters if one.location == "query")


PREFIX_OF_BOX = "within"
# Limits of keys are in bytes of UTF-8, which JSON Schema cannot count.
KEY_SCHEMA = {"type": "string", "minLength": 1}
PREFIX_SCHEMA = {"type": "string"}
NUMBER = r"-?[0-9]{1,3}(\.[0-9]{1,20})?"

MIN_OFFSET = Parameter(
    "minOffset",
    {"type": "integer", "format": "int64", "minimum": 0, "maximum": INT64_MAX},
    "Offset of an event that the answer must contain, as a command returned it. The node waits for it for up to a second.",
)
DECIMALS = Parameter(
    DECIMALS_PARAMETER,
    {"type": "string", "enum": ["number", "string"], "default": "number"},
    "The JSON type of exact decimals: `string` for programs that read numbers as floats, such as JavaScript.",
)
FIELD_NAMES = Parameter(
    FIELD_NAMES_PARAMETER,
    {"type": "string", "enum": list(map(str, FieldNames)), "default": FieldNames.CAMEL.value},
    "`snake_case`: fields have the names of earlier releases, such as `event_count` for `eventCount`. The schemas show the new names. The header `Foldlake-Field-Names` does the same.",
    is_deprecated=True,
)
IF_NONE_MATCH = Parameter(
    "If-None-Match",
    {"type": "string"},
    "`ETag` of an answer that the client has: the status is 304 if it is still the answer.",
    location="header",
)
VERSION = Parameter(
    "version",
    {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER - 1},
    "An active version other than the live one.",
)
KEY = Parameter(
    "key",
    KEY_SCHEMA,
    "Key of a record: the answer is that record, and no parameter of a listing may be given.",
)
PARTITION = Parameter(
    "partition",
    {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER},
    "Partition of the changelog: the answer is a listing of this node's own store.",
)
LIMIT = Parameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    "Records per page.",
)
CURSOR = Parameter(
    "cursor",
    {"type": "string"},
    "`next` of the previous page of the same listing, from any node; the first page without it.",
)
AFTER_KEY = Parameter(
    "after",
    PREFIX_SCHEMA,
    "With `format`: the key after which the stream starts. For pages of a partition it is deprecated: use `cursor`.",
)
PREFIX = Parameter("prefix", PREFIX_SCHEMA, "Only keys that begin with this text.")
WITHIN = Parameter(
    PREFIX_OF_BOX,
    {"type": "string", "pattern": rf"^{NUMBER}(,{NUMBER}){{3}}$"},
    "Only items in this box: `minLat,minLon,maxLat,maxLon` in degrees. Only for read models with a location.",
    "52.4,13.2,52.6,13.6",
)
FORMAT = Parameter(
    "format",
    {"type": "string", "enum": ["arrow"]},
    "All records of `partition` as a stream in Arrow's IPC format.",
)
SAMPLE = Parameter(
    "sample",
    {"type": "string", "pattern": "^[0-9]{1,9}/[0-9]{1,9}$"},
    "`bucket/buckets`: only keys whose CRC-32 modulo `buckets` is `bucket`. Only with `format`.",
    "3/100",
)
SNAPSHOT = Parameter(
    "snapshot", {"type": "boolean", "default": False}, "Begin with the items that are there now."
)
AFTER_EVENT = Parameter(
    "after",
    {
        "type": "string",
        "maxLength": 32768,
        "pattern": r"^([0-9]{1,9}\.[0-9]{1,12}\.[0-9]{1,19}(-[0-9]{1,19})*)?$",
    },
    "The `id` of an event, after which to continue.",
)
LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    AFTER_EVENT.schema,
    "The `id` of the last event, which browsers send when they connect again. It precedes `after`.",
    location="header",
)
SECTIONS = Parameter(
    "sections",
    {"type": "string"},
    "Sections of the status, separated by commas; all by default.",
    "nodes,lake",
)
EXPLAINED_MODEL = Parameter("readModel", {"type": "string"}, "Name of the read model.", is_required=True)
EXPLAINED_KEY = Parameter("key", KEY_SCHEMA, "Key of the record.", is_required=True)
EXPLAINED_VERSION = Parameter(
    "version",
    {"type": "integer", "minimum": 1, "maximum": MAX_NUMBER - 1},
    "A version; the live one by default.",
)

# A path's forms: a record by key, pages of a whole read model, a partition of this node, and that as one stream.
OF_RECORD = (VERSION, MIN_OFFSET, DECIMALS, FIELD_NAMES)
OF_MODEL = (VERSION, CURSOR, LIMIT, WITHIN, PREFIX, DECIMALS, FIELD_NAMES)
OF_PARTITION = (PARTITION, VERSION, CURSOR, AFTER_KEY, LIMIT, WITHIN, PREFIX, DECIMALS, FIELD_NAMES)
OF_RECORD_STREAM = (FORMAT, PARTITION, VERSION, AFTER_KEY, PREFIX, SAMPLE)
OF_CHANGES = (
    Parameter("key", KEY_SCHEMA, "Only changes of this key."),
    PREFIX,
    WITHIN,
    AFTER_EVENT,
    SNAPSHOT,
    VERSION,
    DECIMALS,
    FIELD_NAMES,
)
OF_STATUS = (SECTIONS, FIELD_NAMES)
OF_EXPLANATION = (EXPLAINED_MODEL, EXPLAINED_KEY, EXPLAINED_VERSION, FIELD_NAMES)
# Of documents without a parameter of their own.
OF_DOCUMENT = (FIELD_NAMES,)
