"""The command line's commands, put together."""

import typer

from cli import (
    bench,
    compact,
    dead_letters,
    demo,
    down,
    lake,
    load,
    logs,
    prepare,
    quality,
    rebuild,
    retire,
    rollback,
    status,
    stream,
    test,
    up,
    versions,
)
from stack.provisioning.command_names import ABOUT, COMMANDS

MODULES = {
    "prepare": prepare,
    "demo": demo,
    "up": up,
    "down": down,
    "status": status,
    "logs": logs,
    "dead-letters": dead_letters,
    "load": load,
    "lake": lake,
    "compact": compact,
    "rebuild": rebuild,
    "rollback": rollback,
    "retire": retire,
    "versions": versions,
    "quality": quality,
    "stream": stream,
    "test": test,
    "bench": bench,
}

app = typer.Typer(
    name="foldlake",
    help=ABOUT,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for name, summary in COMMANDS.items():
    module = MODULES[name]
    app.command(
        name,
        short_help=summary,
        context_settings=getattr(module, "CONTEXT_SETTINGS", None),
        add_help_option=not getattr(module, "OWN_HELP", False),
    )(module.run)
