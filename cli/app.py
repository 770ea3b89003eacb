"""The command line: all commands, in groups."""

import inspect

import typer

from cli import (
    bench,
    certificates,
    compact,
    dead_letters,
    demo,
    doctor,
    down,
    explain,
    lake,
    load,
    logs,
    new,
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
    "stream": stream,
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


for group, commands in GROUPS.items():
    for name, summary in commands.items():
        module = MODULES[name]
        app.command(
            name,
            help=help_text(module.run.__doc__ or ""),
            short_help=summary,
            rich_help_panel=group,
            context_settings=getattr(module, "CONTEXT_SETTINGS", None),
            add_help_option=not getattr(module, "OWN_HELP", False),
        )(with_servers(module.run, NEEDED.get(name, ())))
