"""The base class of a kind of declaration: what it compiles to, and how `./foldlake new` starts one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from include.declarations.kinds.flow import Flow
from include.declarations.read_model import NAME_PATTERN
from include.errors import ReadModelError

# Words for the built-in kinds, and folders of checkpoints.
RESERVED = frozenset(
    ("read-model", "route", "emission", "fold", "query", "dead-letter", "compaction", "periodic-emission")
)


class FlowDeclaration(ABC):
    """A kind of declaration that compiles to flows. Its subclasses, usually frozen dataclasses, are the kinds.

    A module of declarations lists the kinds that it defines in `KINDS`, and other modules import them from it:
    `from include.read_models.<module> import <Kind>`. Everything else follows from the flows.

    kind: the word for it, in names of queries, on the status page and in `./foldlake new <kind> <name>`: lower case, digits and dashes.
    template: the module that `./foldlake new` writes, a `string.Template` with `$name`, `$import_kind` (the line that imports the class),
        `$source_topic`, `$source_type` and `$key`, the field that is the key of the events. Empty: `new` does not offer the kind.
    test_template: the test of that module, with `$example`, an event, as well.
    name: of the declaration.
    """

    kind: ClassVar[str]
    template: ClassVar[str] = ""
    test_template: ClassVar[str] = ""
    name: str

    @abstractmethod
    def flows(self) -> Sequence[Flow]:
        """Return the flows of the declaration, of its kind; raises ReadModelError if it cannot work."""

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise ReadModelError if it compiles to no flow or to one of another kind, and errors of their schemas."""
        flows = self.flows()
        if not flows:
            raise ReadModelError(f"{self.kind.capitalize()} {self.name} compiles to no flow.")
        for flow in flows:
            if flow.kind != self.kind:
                raise ReadModelError(
                    f"{self.kind.capitalize()} {self.name} compiles to a flow of kind {flow.kind!r}: use {self.kind!r}."
                )
            replace(flow, schema_folders=folders).require_schemas()


def require_kind(kind: object) -> type[FlowDeclaration]:
    """Return a member of a list KINDS; raises ReadModelError if it is no kind, or its word is not valid or reserved."""
    if not (isinstance(kind, type) and issubclass(kind, FlowDeclaration)):
        raise ReadModelError(f"KINDS has {kind!r:.80}, which is no kind: list subclasses of FlowDeclaration.")
    word = getattr(kind, "kind", None)
    if not isinstance(word, str) or not NAME_PATTERN.fullmatch(word):
        raise ReadModelError(
            f"`kind` of {kind.__name__} is {word!r}: give a word of lower-case letters, digits and dashes."
        )
    if word in RESERVED:
        raise ReadModelError(f"`kind` of {kind.__name__} is {word!r}, which is reserved: use another word.")
    if missing := getattr(kind, "__abstractmethods__", None):
        raise ReadModelError(
            f"{kind.__name__} has no {', '.join(sorted(missing))}: a kind compiles to flows."
        )
    return kind
