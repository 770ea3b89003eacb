"""`./foldlake reset`: build a new version of a read model that starts at another event."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from include.settings import Settings
    from include.versions.start_rule import StartRule


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    read_model: Annotated[str, typer.Argument(help="The read model.")],
    to: Annotated[
        str,
        typer.Option(help="Start at the first event (`earliest`), or at a time, such as 2026-11-01T00:00Z."),
    ] = "",
    shift_by: Annotated[
        int | None,
        typer.Option(
            help="Start this many events after the live version's start, in each partition; negative: before it."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    reason: Annotated[
        str, typer.Option(help="The reason, stored with the version. Default: the reset.")
    ] = "",
    approve: Annotated[
        bool,
        typer.Option("--approve/--auto-promote", help="Wait for approval, or promote once verified."),
    ] = True,
    grace_hours: Annotated[
        float | None, typer.Option(help="Hours to keep the replaced version for a rollback.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Show the stages until the version is live.")] = True,
) -> None:
    """Build a new version of a read model that counts events from another start on; verify it, and promote it.

    It has the fold of the live version, which continues to serve lookups and is kept for a rollback. Times are those of the records in Kafka,
    in UTC unless they have another offset. Runs Airflow's DAG `rebuild`; the exit code is that of `./foldlake rebuild`.

    Examples:
      ./foldlake reset balance --to 2026-11-01T00:00Z --dry-run

      ./foldlake reset balance --to 2026-11-01T00:00Z --reason "opening balances are in another system"

      ./foldlake reset balance --shift-by -100

      ./foldlake reset balance --to earliest
    """
    from cli.servers import KAFKA, require_up
    from include.declarations.load import read_model as declared
    from include.settings import Settings
    from include.versions.start_rule import StartRule

    if bool(to) == (shift_by is not None):
        raise typer.BadParameter("Give --to or --shift-by, one of them.")
    rule = StartRule.parse(to) if to else StartRule(shift_by=shift_by)
    if to and rule.shift_by is not None:
        raise typer.BadParameter("Give --shift-by as a separate option.")
    settings = Settings()
    declared(read_model, settings.declaration_folders)
    require_up(settings, (KAFKA,))
    if dry_run:
        _dry_run(settings, read_model, rule)
        return
    conf = {
        "reason": reason or f"reset: {rule}",
        "approve": approve,
        "grace_hours": settings.rebuild.grace_h if grace_hours is None else grace_hours,
    }
    _reset(settings, read_model, rule, conf, follow=follow)


def _reset(
    settings: "Settings", read_model: str, rule: "StartRule", conf: dict[str, Any], *, follow: bool
) -> None:
    from cli.rebuild import follow_promotion, rebuild_run
    from include.versions.registry import VersionRegistry, record_of

    with VersionRegistry(settings.kafka_connection) as registry:
        live = record_of(registry, read_model).live
    conf |= {
        "read_model": read_model,
        "fold_revision": None if live is None else live.fold_revision,
        "start": str(rule),
    }
    follow_promotion(settings, rebuild_run(settings, conf), read_model, follow=follow)


def _dry_run(settings: "Settings", read_model: str, rule: "StartRule") -> None:
    import tempfile
    from pathlib import Path

    from rich.console import Console

    from cli.display.comparison_display import print_comparison
    from include.rebuild.comparison.comparison import Comparison
    from stack.launchers.direct_submit import run as run_job

    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "preview.json"
        arguments = ("--read-model", read_model, "--start", str(rule), "--result", str(result))
        if run_job(settings, "reset_preview", arguments) != 0:
            raise typer.Exit(1)
        console = Console(highlight=False)
        print_comparison(console, Comparison.from_json(result.read_text(encoding="utf-8")), "after the reset")
        console.print("Nothing was changed.")
