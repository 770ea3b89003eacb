"""The programs that supervisord runs, in the home: no command line of its configuration names the folder of a release or its tools.

So `./foldlake up` of a release in another folder replaces what they run, and keeps the programs that hold the listening sockets.
"""

from pathlib import Path

from include.files import write_atomically
from stack.supervision import exec_process, socket_holder

EXEC_PROCESS = Path(exec_process.__file__)
SOCKET_HOLDER = Path(socket_holder.__file__)


def program_command(home: Path, program: Path, *arguments: object) -> list[str]:
    """Return the command line of the copy of EXEC_PROCESS or SOCKET_HOLDER.

    The interpreter imports the standard library only: it ignores variables of the environment (`-I`) and installed packages (`-S`).
    """
    return [str(_python(home)), "-I", "-S", str(_copy(home, program)), *map(str, arguments)]


def install_programs(home: Path, python: Path) -> None:
    """Replace the programs by those of this release, and the link by one to this interpreter. What runs is not affected."""
    for program in (EXEC_PROCESS, SOCKET_HOLDER):
        write_atomically(_copy(home, program), program.read_bytes())
    link = _python(home)
    new = link.with_name(".python.new")
    new.unlink(missing_ok=True)
    # Not the one of the tools, which are removed with the folder of a release.
    new.symlink_to(python.resolve())
    new.replace(link)


def _python(home: Path) -> Path:
    return _folder(home) / "python"


def _copy(home: Path, program: Path) -> Path:
    return _folder(home) / program.name


def _folder(home: Path) -> Path:
    return home / "run" / "programs"
