"""The page of metrics: names, labels and texts as the code passes them to Prometheus' client."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.documentation.reference.markdown import code, codes, page, table
from include.errors import FoldlakeError
from include.settings import CHECKOUT

FOLDER = CHECKOUT / "query_api" / "metrics"
PREFIX = "foldlake_"
ABOUT = """Every query node serves three pages in Prometheus' text format. [Metrics](../operations.md#metrics) says how to scrape them.

A gauge without a value is missing: for example, a version without a passed check has no age of its verification."""
# Function that yields metrics of status_metrics.py -> its page; those of node_metrics.py are on the first.
NODE, STREAM, STATUS = "/metrics", "/metrics/stream", "/metrics/status"
PAGES = {"_stream": STREAM, "_outputs": STREAM, "_queries": STREAM, "_metrics": STATUS}
TITLES = {
    NODE: "The node, summed over its worker processes.",
    STREAM: "The whole stream, measured on its topics: the same on every node.",
    STATUS: "The servers and the lake, as the status page shows them.",
}
CLASSES = {"Counter": "counter", "Histogram": "histogram", "Gauge": "gauge"}


@dataclass(frozen=True)
class MetricCall:
    """A call that makes a metric: its page, name, type, labels and text."""

    page: str
    name: str
    type: str
    labels: tuple[str, ...]
    text: str


def metrics_page() -> str:
    """Return the page; raises FoldlakeError if a metric is made in another way than this module knows."""
    calls = [
        call for name in ("node_metrics", "status_metrics") for call in metric_calls(FOLDER / f"{name}.py")
    ]
    parts = []
    for path, about in TITLES.items():
        rows = [(code(one.name), one.type, codes(one.labels), one.text) for one in calls if one.page == path]
        parts += [f"## {path}", about, table(("Metric", "Type", "Labels", "Meaning"), rows)]
    return page("Metrics", ABOUT, *parts)


def metric_calls(module: Path) -> Iterator[MetricCall]:
    """Yield the metrics that a module makes."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for part in tree.body:
        function = part.name if isinstance(part, ast.FunctionDef) else ""
        gauges = {
            target.id: _labels(node.value)
            for node in ast.walk(part)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and node.args and (name := _text(node.args[0])).startswith(PREFIX):
                yield _metric(node, name, PAGES.get(function, NODE), gauges)


def _metric(call: ast.Call, name: str, path: str, gauges: dict[str, tuple[str, ...]]) -> MetricCall:
    function = call.func
    if isinstance(function, ast.Name):
        kind = CLASSES.get(function.id, "gauge")
        labels = _strings(call.args[-1]) if function.id in CLASSES else ()
        return MetricCall(
            path, f"{name}_total" if kind == "counter" else name, kind, labels, _text(call.args[1])
        )
    if isinstance(function, ast.Attribute) and function.attr == "of":
        owner = function.value
        labels = gauges.get(owner.id, ()) if isinstance(owner, ast.Name) else _labels(owner)
        return MetricCall(path, name, "gauge", labels, _text(call.args[1]))
    raise FoldlakeError(f"The reference does not know how {name} is made: change {Path(__file__).name}.")


def _labels(node: ast.expr) -> tuple[str, ...]:
    """Return the labels of `Gauges([…], …)`."""
    is_gauges = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Gauges"
    return _strings(node.args[0]) if is_gauges and isinstance(node, ast.Call) else ()


def _strings(node: ast.expr) -> tuple[str, ...]:
    return tuple(map(_text, node.elts)) if isinstance(node, ast.List) else ()


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
