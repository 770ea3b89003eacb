"""A read model declares its placement, and FOLDLAKE_PLACEMENTS overrides it; an entry that cannot be applied is an error."""

from dataclasses import replace

import pytest

from include.declarations.catalog import Catalog
from include.errors import ReadModelError, SettingsError
from include.nodes.placements import placements
from include.read_models.balance.model import READ_MODEL
from include.settings import Placement, Settings


def test_read_model_is_partitioned_unless_it_or_the_setting_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert placements(Settings.of()) == {"balance": Placement.PARTITIONED}

    monkeypatch.setenv("FOLDLAKE_PLACEMENTS", " balance = replicated ,")
    assert placements(Settings.of()) == {"balance": Placement.REPLICATED}


def test_setting_overrides_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = replace(READ_MODEL, placement=Placement.REDIS)
    monkeypatch.setattr("include.nodes.placements.load_catalog", lambda _: Catalog({"balance": declared}))

    assert placements(Settings.of()) == {"balance": Placement.REDIS}
    assert placements(Settings.of(placements="balance=partitioned")) == {"balance": Placement.PARTITIONED}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("balances=redis", "names 'balances', which is no read model. Known ones: balance"),
        ("balance=everywhere", "one of the placements partitioned, replicated, redis"),
        ("balance", "write <read model>=<placement>"),
    ],
)
def test_entry_that_cannot_be_applied_is_refused(entry: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        placements(Settings.of(placements=entry))


def test_unknown_placement_in_a_declaration_is_refused() -> None:
    with pytest.raises(
        ReadModelError, match="placement of read model balance is 'everywhere': allowed: partitioned"
    ):
        replace(READ_MODEL, placement="everywhere")  # type: ignore[arg-type]  # a declaration is not type-checked
