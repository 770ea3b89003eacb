"""`./foldlake explain`: where the state of a key comes from."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.display.documents import NamesOption
from include.nodes.field_names import FieldNames

if TYPE_CHECKING:
    from include.settings import Settings
    from include.versions.explanation import Explanation


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    key: Annotated[str, typer.Argument(help="The key of the record.")],
    version: Annotated[
        int | None, typer.Option(min=1, help="Show the states of this version. Default: the live one.")
    ] = None,
    events: Annotated[
        int, typer.Option(min=1, max=500, help="Show this many first and this many newest events.")
    ] = 20,
    personal: Annotated[
        bool, typer.Option("--personal", help="Show personal fields of events, which are left out otherwise.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    names: NamesOption = FieldNames.CAMEL,
) -> None:
    """Show the events behind a key's state, in order, with the state after each, and what other versions give.

    Reads the key's events from Kafka, and folds them as the streams do: with DuckDB, or with a Spark job if a rule needs Spark. The state is
    compared with the record that a query node serves. Every query node has the same as a page, at /explain.

    Examples:
      ./foldlake explain balance 1

      ./foldlake explain balance 1 --version 2

      ./foldlake explain balance 1 --json
    """
    from rich.console import Console

    from cli.display.documents import print_document
    from cli.display.explanation_display import print_explanation
    from include.settings import Settings
    from include.versions.explanation import key_argument

    options = [f"--read-model={read_model}", key_argument(key), f"--events={events}"]
    options += [] if version is None else [f"--version={version}"]
    options += ["--personal"] if personal else []
    with Console(stderr=True).status("Reading the log and folding the events of this key"):
        found = _explained(Settings(), options)
    if as_json:
        print_document(found.document(), names, indent=False)
        return
    print_explanation(Console(highlight=False), found)


def _explained(settings: "Settings", options: list[str]) -> "Explanation":
    import os
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    from include.settings import CHECKOUT, settings_environment
    from include.versions.explanation import PROGRAM, Explanation, NotExplainedError
    from stack.supervision.configuration import log_path

    log = log_path(settings.home, "explain")
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "explanation.json"
        command = [sys.executable, "-m", PROGRAM, *options, f"--result={result}"]
        environment = {**os.environ, **settings_environment(settings)}
        with log.open("wb") as output:
            status = subprocess.run(
                command, cwd=CHECKOUT, env=environment, stdout=output, stderr=output, check=False
            ).returncode
        if not result.exists():
            raise NotExplainedError(f"The program ended with status {status}. Its log is {log}.")
        return Explanation.from_json(result.read_text(encoding="utf-8"))
