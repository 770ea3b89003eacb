"""The placement of each read model: what it declares, unless FOLDLAKE_PLACEMENTS names another one."""

from collections.abc import Collection

from include.declarations.load import load_catalog
from include.errors import SettingsError
from include.settings import Placement, Settings

VARIABLE = "FOLDLAKE_PLACEMENTS"


def placements(settings: Settings) -> dict[str, Placement]:
    """Return the placement of every read model by name; raises SettingsError, and ReadModelError for a declaration that is not valid."""
    models = load_catalog(settings.declaration_folders).models
    declared = {name: model.placement for name, model in models.items()}
    return declared | _overrides(settings.node.placements, declared)


def _overrides(entries: Collection[str], known: Collection[str]) -> dict[str, Placement]:
    found: dict[str, Placement] = {}
    for entry in entries:
        name, _, placement = (part.strip() for part in entry.partition("="))
        if name not in known:
            raise SettingsError(
                f"{VARIABLE} names {name!r}, which is no read model. Known ones: {', '.join(sorted(known))}."
            )
        if placement not in set(Placement):
            raise SettingsError(
                f"{VARIABLE} has {entry!r}: write <read model>=<placement>, with one of the placements {', '.join(Placement)}."
            )
        found[name] = Placement(placement)
    return found
