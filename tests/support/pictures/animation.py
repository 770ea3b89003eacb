"""README's animation: an SVG that shows five scenes of a changed rule, one after the other, in an endless loop."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 960, 580
BAR_HEIGHT = 56
SECONDS_PER_SCENE = 4.0
FADE = 0.6  # percent of the loop
LINE_HEIGHT = 24
MARGIN = 32
STYLE = """
text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 15px; fill: #d7dce2; white-space: pre; }
.step { font-family: system-ui, sans-serif; font-size: 16px; fill: #8b95a1; }
.note { font-family: system-ui, sans-serif; font-size: 17px; fill: #9fb6d3; }
.added { fill: #6fd08c; } .removed { fill: #ff8f8f; } .strong { fill: #ffffff; font-weight: bold; }
.current { fill: #ffffff; }
"""


@dataclass(frozen=True)
class Line:
    """A line of text. kind: a CSS class of STYLE; empty for plain text."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Scene:
    """One scene. step: its name in the bar. content: lines of text, or the path of a PNG that is WIDTH pixels wide."""

    step: str
    content: Sequence[Line] | Path


def animation(scenes: Sequence[Scene]) -> str:
    """Return the SVG. Each scene is shown for SECONDS_PER_SCENE; readers who prefer less motion get the second one only."""
    count = len(scenes)
    shown = "\n".join(
        f'<g class="scene s{number}">{_scene(scene)}</g>' for number, scene in enumerate(scenes)
    )
    steps = "\n".join(_step(number, scene.step, count) for number, scene in enumerate(scenes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">\n'
        f"<style>{STYLE}{_timing(count)}</style>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#14181d"/>\n{shown}\n{steps}\n</svg>\n'
    )


def _timing(count: int) -> str:
    share = 100 / count
    rules = [
        (
            f"@keyframes scene {{ 0% {{ opacity: 0; }} {FADE}% {{ opacity: 1; }} {share - FADE:.2f}% {{ opacity: 1; }}"
            f" {share:.2f}% {{ opacity: 0; }} 100% {{ opacity: 0; }} }}"
        ),
        f".scene, .current {{ opacity: 0; animation: scene {count * SECONDS_PER_SCENE}s infinite; }}",
    ]
    rules += [f".s{number} {{ animation-delay: {number * SECONDS_PER_SCENE}s; }}" for number in range(count)]
    rules.append(
        "@media (prefers-reduced-motion: reduce) { .scene, .current { animation: none; } .s1 { opacity: 1; } }"
    )
    return "\n".join(rules)


def _scene(scene: Scene) -> str:
    if isinstance(scene.content, Path):
        data = base64.b64encode(scene.content.read_bytes()).decode()
        image = f'<image y="{BAR_HEIGHT}" width="{WIDTH}" href="data:image/png;base64,{data}"/>'
        return f'<clipPath id="below"><rect y="{BAR_HEIGHT}" width="{WIDTH}" height="{HEIGHT}"/></clipPath><g clip-path="url(#below)">{image}</g>'
    first = BAR_HEIGHT + MARGIN + LINE_HEIGHT
    return "".join(
        f'<text class="{line.kind}" x="{MARGIN}" y="{first + number * LINE_HEIGHT}">{escape(line.text)}</text>'
        for number, line in enumerate(scene.content)
    )


def _step(number: int, name: str, count: int) -> str:
    x = MARGIN + number * (WIDTH - 2 * MARGIN) / count
    text = f'x="{x:.0f}" y="{BAR_HEIGHT - 20}">{number + 1}  {escape(name)}</text>'
    return f'<text class="step" {text}<text class="step current s{number}" {text}'
