"""The page of commands: what `./foldlake COMMAND --help` shows."""

import inspect
from collections.abc import Iterator
from enum import Enum

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from cli.documentation.reference.markdown import block, code, codes, one_line, page, sentence, table
from stack.provisioning.command_names import COMMANDS

ABOUT = """Each command has this help in the terminal too: `./foldlake COMMAND --help`. `./foldlake` alone lists the commands in groups.

The first command installs everything that is missing. `./foldlake --version` prints the version."""
EXAMPLES = ("Example:", "Examples:")


def commands_page(application: object) -> str:
    """Return the page of an application's commands, in the order of the overview."""
    own = sorted(_commands(application), key=lambda command: list(COMMANDS).index(command.name or ""))
    return page("Commands", ABOUT, *(_command("./foldlake", command, 2) for command in own))


def _commands(command: object) -> list[TyperCommand | TyperGroup]:
    own = command.commands.values() if isinstance(command, TyperGroup) else ()
    return [one for one in own if isinstance(one, TyperCommand | TyperGroup)]


def _command(parents: str, command: TyperCommand | TyperGroup, level: int) -> str:
    """Return the section of a command, and those of its own commands."""
    title = f"{parents} {command.name}"
    context = command.context_class(command, info_name=title)
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    own = [_command(title, one, level + 1) for one in _commands(command)]
    head = f"{'#' * level} {title.removeprefix('./foldlake ')}"
    return "\n\n".join([head, *_help(command.help or ""), block(usage, "text"), *_parameters(command), *own])


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; examples are blocks of code."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    examples: list[str] = []
    for paragraph in paragraphs:
        first, _, rest = paragraph.partition("\n")
        if first in EXAMPLES or examples:
            examples += [line.strip() for line in (rest if first in EXAMPLES else paragraph).splitlines()]
        else:
            yield one_line(paragraph)
    if examples:
        yield block("\n".join(examples), "sh")


def _parameters(command: TyperCommand | TyperGroup) -> Iterator[str]:
    shown = [one for one in command.params if isinstance(one, TyperArgument | TyperOption) and not one.hidden]
    rows = [_row(one) for one in shown]
    if rows:
        yield table(("Argument or option", "Default", "Effect"), rows)


def _row(parameter: TyperArgument | TyperOption) -> tuple[str, str, str]:
    about = sentence(one_line(parameter.help or ""))
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        about = f"{about} One of {codes(one.value for one in kind)}.".strip()
    if isinstance(parameter, TyperOption):
        names = ", ".join(code(name) for name in (*parameter.opts, *parameter.secondary_opts))
        default = "" if parameter.is_flag or callable(parameter.default) else parameter.default
        shown = (
            "" if default in (None, "", ()) else code(default.value if isinstance(default, Enum) else default)
        )
        return names, shown, about
    return code((parameter.metavar or parameter.name or "").upper()), "", about
