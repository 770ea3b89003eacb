"""The colours of the pages have the contrast that WCAG 2.2 asks for at level AA, in light and dark."""

import re

import pytest

from query_api.http.pages.pages import FOLDER

TEXT, GRAPHIC = 4.5, 3.0
CSS = (FOLDER / "page.css").read_text(encoding="utf-8")
_LIGHT, _DARK = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in CSS.split("@media", 2)[:2])
THEMES = {"light": _LIGHT, "dark": _DARK}
PAIRS = [
    *((ink, ground, TEXT) for ink in ("ink", "soft", "accent") for ground in ("ground", "panel")),
    *((state, f"{state}-ground", TEXT) for state in ("good", "warn", "bad")),
    *(("ink", f"{state}-ground", TEXT) for state in ("warn", "bad")),
    *((line, "panel", GRAPHIC) for line in ("one", "two")),
]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour `#rrggbb` (WCAG 2.2)."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_black_on_white_has_the_greatest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("ink", "ground", "least"), PAIRS)
def test_a_colour_can_be_read_on_its_ground(theme: str, ink: str, ground: str, least: float) -> None:
    colours = THEMES[theme]

    assert contrast(colours[ink], colours[ground]) >= least
