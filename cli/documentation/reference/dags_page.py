"""The page of Airflow's DAGs: their schedules and the parameters of their forms."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cli.documentation.reference.markdown import code, codes, page, sentence, table
from include.errors import FoldlakeError
from include.rebuild.plan import REBUILD, ROLLBACK, stage_table
from include.settings import CHECKOUT, Settings
from stack.components import airflow

ABOUT = """Airflow runs these DAGs. A parameter is a field of the form that **Trigger** shows, and a member of `conf` in a request to Airflow's API.
[How Airflow runs Foldlake](../airflow.md) describes what each DAG does.

The texts are those of the default settings and of the read model `balance`: a form offers the read models that exist."""

# DAGs whose tasks are the stages of a plan.
PLANS = {plan.name: plan for plan in (REBUILD, ROLLBACK)}


def dags_page() -> str:
    """Return the page; raises FoldlakeError if a DAG cannot be loaded."""
    return page("Airflow DAGs", ABOUT, *map(_dag, _dags()))


def _dags() -> list[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        output = Path(folder) / "dags.json"
        command = [sys.executable, "-W", "ignore", "-m", "cli.documentation.reference.dag_forms"]
        # Nothing of the user's settings: the page shows the defaults.
        own = {name: value for name, value in os.environ.items() if not name.startswith("FOLDLAKE_")}
        settings = Settings.of(home=Path(folder) / "home", systems=(), read_models_dir=None)
        done = subprocess.run(
            [*command, output, CHECKOUT / "dags"],
            cwd=CHECKOUT,
            env=own | airflow.environment(settings),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise FoldlakeError(f"The DAGs cannot be loaded. {done.stderr.strip()[-2000:]}")
        found: list[dict[str, Any]] = json.loads(output.read_text(encoding="utf-8"))
        return found


def _dag(dag: dict[str, Any]) -> str:
    rows = [_parameter(one) for one in dag["parameters"]]
    parts = [
        f"## {dag['id']}",
        sentence(dag["about"]),
        f"Schedule: {dag['schedule']}.",
        table(("Parameter", "Type", "Default", "Meaning"), rows),
        stage_table(PLANS[dag["id"]]) if dag["id"] in PLANS else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _parameter(one: dict[str, Any]) -> tuple[str, str, str, str]:
    values = [value for value in one["values"] if value is not None]
    types = one["type"] if isinstance(one["type"], list) else [one["type"]]
    shown = " or ".join(kind for kind in types if kind and kind != "null") or "text"
    if values and "balance" not in values:
        shown = f"{shown} of {codes(values)}" if shown == "array" else codes(values)
    low, high = one["limits"]
    limits = "".join([f", ≥ {low}" if low is not None else "", f", ≤ {high}" if high is not None else ""])
    default = "" if one["default"] in (None, "") else code(json.dumps(one["default"]).strip('"'))
    return code(one["name"]), shown + limits, default, sentence(one["about"])
