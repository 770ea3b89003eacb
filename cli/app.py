"""The command line: all commands, in groups."""

import inspect
from types import ModuleType

import typer

from cli import (
    bench,
    certificates,
    compact,
    dead_letters,
    demo,
    docs,
    doctor,
    down,
    explain,
    keys,
    lake,
    load,
    logs,
    new,
    openapi,
    prepare,
    quality,
    rebuild,
    reset,
    retire,
    rollback,
    sql,
    status,
    stream,
    systems,
    test,
    up,
    versions,
)
from cli.servers import AIRFLOW, KAFKA, REGISTRY, with_servers
from stack.provisioning.command_names import ABOUT, GROUPS

MODULES = {
    "prepare": prepare,
    "certificates": certificates,
    "demo": demo,
    "up": up,
    "down": down,
    "doctor": doctor,
    "status": status,
    "logs": logs,
    "keys": keys,
    "dead-letters": dead_letters,
    "load": load,
    "lake": lake,
    "compact": compact,
    "sql": sql,
    "rebuild": rebuild,
    "reset": reset,
    "rollback": rollback,
    "retire": retire,
    "versions": versions,
    "explain": explain,
    "quality": quality,
    "systems": systems,
    "new": new,
    "openapi": openapi,
    "stream": stream,
    "docs": docs,
    "test": test,
    "bench": bench,
}

# Command -> the servers without which it can do nothing.
NEEDED = {
    "versions": (KAFKA,),
    "explain": (KAFKA, REGISTRY),
    "dead-letters": (KAFKA,),
    "retire": (KAFKA,),
    "rollback": (KAFKA, AIRFLOW),
    "load": (KAFKA, REGISTRY),
    "compact": (KAFKA, AIRFLOW),
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


def help_text(docstring: str) -> str:
    """Return a command's help: its docstring, with each paragraph except examples on one line, for the terminal to wrap."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(text if "\n " in text else text.replace("\n", " ") for text in paragraphs)


def add_group(name: str, module: ModuleType, summary: str, panel: str) -> None:
    """Add a command that has commands of its own."""
    commands = typer.Typer(help=help_text(module.run.__doc__ or ""), no_args_is_help=True)
    for own_name, command in module.SUBCOMMANDS.items():
        commands.command(own_name, help=help_text(command.__doc__ or ""))(command)
    app.add_typer(commands, name=name, short_help=summary, rich_help_panel=panel)


for group, commands in GROUPS.items():
    for name, summary in commands.items():
        module = MODULES[name]
        if hasattr(module, "SUBCOMMANDS"):
            add_group(name, module, summary, group)
            continue
        app.command(
            name,
            help=help_text(module.run.__doc__ or ""),
            short_help=summary,
            rich_help_panel=group,
            context_settings=getattr(module, "CONTEXT_SETTINGS", None),
            add_help_option=not getattr(module, "OWN_HELP", False),
        )(with_servers(module.run, NEEDED.get(name, ())))
