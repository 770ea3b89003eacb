"""`./foldlake doctor`: checks of the machine, the downloads and the servers."""

from typing import Annotated

import typer


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
) -> None:
    """Check this machine, its ports, the sources of downloads, and the servers in the settings, and show what to correct.

    It checks the names of settings, Python, Java, memory, disks and file systems, ports, package index and Maven repository, and the clock.
    It also checks servers of your own: Kafka, schema registry, Airflow, Redis, Spark. It changes nothing, and works before the first
    `./foldlake up` and while the stack runs.

    The exit code is 1 when Foldlake cannot work, otherwise 0.

    Examples:
      ./foldlake doctor

      ./foldlake doctor --json
    """
    import sys
    from collections.abc import Iterator

    from include.errors import FoldlakeError
    from include.settings import Settings, setting_warnings
    from stack.doctor import prepared, unprepared
    from stack.doctor.finding import Finding, State, report

    def findings() -> Iterator[Finding]:
        for warning in setting_warnings():
            yield Finding("settings", State.WARNING, warning)
        try:
            settings = Settings()
        except FoldlakeError as error:
            yield Finding("settings", State.PROBLEM, str(error))
            yield from unprepared.findings()
        else:
            yield from prepared.findings(settings)

    raise typer.Exit(report(findings(), is_json=as_json, output=sys.stdout))
