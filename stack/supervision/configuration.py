"""supervisord's configuration: its own section, and one per process of the stack.

The secrets in the environment of processes are in one file that only its owner can read, instead of the processes' descriptions. These
contain a keyed digest of each secret, so that a changed secret changes the description.
"""

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from include.declarations.event_types.event_schemas import READ_MODELS
from include.files import PRIVATE_FILE, PRIVATE_UMASK, write_atomically
from include.settings import (
    CHECKOUT,
    PREFIX,
    SECRETS,
    WRITTEN_SETTINGS,
    Settings,
    serving_environment,
    settings_environment,
)
from stack.supervision import socket_holder
from stack.supervision.code_digest import code_digest
from stack.supervision.home_programs import (
    EXEC_PROCESS,
    SOCKET_HOLDER,
    install_programs,
    program_command,
)
from stack.supervision.process import Process
from stack.tools import Tools

SECRET_VARIABLES = frozenset(f"{PREFIX}{setting.upper()}" for setting in SECRETS)
DIGEST_CHARACTERS = 12


def split_secrets(
    settings: Settings, environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Split an environment into variables without secrets, and those whose value contains a secret setting."""
    values = settings_environment(settings)
    secret_values = [values[name] for name in SECRET_VARIABLES if values[name]]
    secret = {
        name: value
        for name, value in environment.items()
        if any(secret_value in value for secret_value in secret_values)
    }
    return {name: value for name, value in environment.items() if name not in secret}, secret


class SecretsFile:
    """The secrets of all processes, by process and variable. The key of the digests changes whenever the file is created."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._key = str(json.loads(path.read_text(encoding="utf-8"))["key"])
        except (OSError, ValueError, KeyError, TypeError):
            self._key = secrets.token_hex()

    def digests(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return a digest of each value, which tells nothing about it without the file."""
        key = self._key.encode()
        return {
            name: hmac.new(key, value.encode(), "sha256").hexdigest()[:DIGEST_CHARACTERS]
            for name, value in environment.items()
        }

    def write(self, environments: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the file's content."""
        content = json.dumps({"key": self._key, "environments": environments}, indent=1)
        write_atomically(self.path, content, mode=PRIVATE_FILE)


# A Unix socket's path may have at most 107 bytes, and supervisord first binds a name with its process id appended.
LONGEST_SOCKET_PATH = 90
LOG_BYTES = 20 * 1024 * 1024
LOG_BACKUPS = 3


def configuration_path(home: Path) -> Path:
    """Return the path of supervisord's configuration."""
    return _run_dir(home) / "supervisord.conf"


def log_path(home: Path, name: str) -> Path:
    """Return the log file of a process, or of `supervisord` itself."""
    return home / "logs" / f"{name}.log"


def socket_path(home: Path) -> Path:
    """Return the path of supervisord's socket."""
    return unix_socket(home / "run" / "supervisor.sock", home)


def unix_socket(inside: Path, identity: Path) -> Path:
    """Return the path of a socket: `inside` the home, or one in the temporary directory, named after `identity`, if that is too long."""
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(identity)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"foldlake-{os.getuid()}-{digest}.sock"


def secrets_path(home: Path) -> Path:
    """Return the path of the secrets in the processes' environments."""
    return _run_dir(home) / "secrets.json"


def descriptions_dir(home: Path) -> Path:
    """Return the folder of the processes' descriptions."""
    return _run_dir(home) / "processes"


def held_files(home: Path, name: str) -> socket_holder.Files:
    """Return the files of a server whose listening sockets are held."""
    return socket_holder.Files(descriptions_dir(home) / name)


def write_configuration(settings: Settings, processes: Iterable[Process]) -> dict[str, Path]:
    """Write supervisord's configuration for these processes, and create the folders that it refers to.

    Returns the path of each process's description.
    """
    run = _run_dir(settings.home)
    run.mkdir(parents=True, exist_ok=True)
    install_programs(settings.home, Tools(settings.tools).main_python)
    log_path(settings.home, "supervisord").parent.mkdir(parents=True, exist_ok=True)
    secrets_file = SecretsFile(secrets_path(settings.home))
    sections = [_main_section(settings.home)]
    secrets: dict[str, dict[str, str]] = {}
    descriptions: dict[str, Path] = {}
    for process in processes:
        secrets[process.name] = split_secrets(settings, _environment(settings, process))[1]
        description = _write_description(settings, process, describe(settings, process, secrets_file))
        descriptions[process.name] = description
        sections.append(_program_section(settings, process, description))
    secrets_file.write(secrets)
    write_atomically(configuration_path(settings.home), "\n".join(sections))
    return descriptions


def _run_dir(home: Path) -> Path:
    return home / "run"


def _main_section(home: Path) -> str:
    run = _run_dir(home)
    user = "user=root" if os.getuid() == 0 else ""
    return f"""\
[supervisord]
{user}
logfile={_escaped(log_path(home, "supervisord"))}
logfile_maxbytes=50MB
logfile_backups=1
umask={PRIVATE_UMASK:03o}
pidfile={_escaped(run / "supervisord.pid")}
childlogdir={_escaped(run)}

[unix_http_server]
file={_escaped(socket_path(home))}
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""


def _program_section(settings: Settings, process: Process, description: Path) -> str:
    group = "true" if process.kill_as_group else "false"
    return f"""\
[program:{process.name}]
command={_command(settings, process, description)}
directory={_escaped(settings.home)}
autostart=false
autorestart=true
startsecs=1
startretries=1000
stopsignal={process.stop_signal}
stopwaitsecs={process.stop_timeout_s}
killasgroup={group}
redirect_stderr=true
stdout_logfile={_escaped(_escaped(log_path(settings.home, process.name)))}
stdout_logfile_maxbytes={LOG_BYTES}
stdout_logfile_backups={LOG_BACKUPS}
"""


def _command(settings: Settings, process: Process, description: Path) -> str:
    """Return the command line of a process. If it is held, that does not depend on the description: no change of that ends the holder."""
    home, secrets = settings.home, secrets_path(settings.home)
    if (held := process.held) is None:
        command = program_command(home, EXEC_PROCESS, description, secrets)
    else:
        base = descriptions_dir(home) / process.name
        listen = held.address, process.port or 0, held.sockets
        command = program_command(home, SOCKET_HOLDER, base, secrets, *listen)
    return " ".join(f'"{_escaped(part)}"' for part in command)


def describe(settings: Settings, process: Process, secrets_file: SecretsFile) -> dict[str, object]:
    """Return the command and the environment of a process for `exec_process`, with digests of secrets, declarations and code."""
    plain, secrets = split_secrets(settings, _environment(settings, process))
    described: dict[str, object] = {
        "name": process.name,
        "command": list(process.command),
        "environment": plain,
        "secrets": secrets_file.digests(secrets),
    }
    if process.reads_declarations:
        described["declarations"] = declarations_digest(settings.declaration_folders)
    if process.code:
        described["directory"] = str(CHECKOUT)
        described["code"] = code_digest(process.code)
    return described


def _write_description(settings: Settings, process: Process, described: Mapping[str, object]) -> Path:
    """Write the description of a process, and return the file's path.

    The file name contains a digest of its content: a changed process gets a new command line, which supervisord detects. The file before is
    kept, with which supervisord restarts the process until it is replaced.
    """
    description = json.dumps(described, indent=1)
    digest = hashlib.sha256(description.encode()).hexdigest()[:12]
    path = descriptions_dir(settings.home) / f"{process.name}-{digest}.json"
    if not path.exists():
        write_atomically(path, description)
    return path


def _environment(settings: Settings, process: Process) -> dict[str, str]:
    java = {"JAVA_HOME": str(Tools(settings.tools).java_home)}
    if not process.reads_settings:
        return {**java, **process.environment}
    python = {"PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"}
    if process.settings_file is not None:
        values = settings_environment(settings)
        # Empty ones too: they replace those with which supervisord was started.
        secrets = {name: values.get(name, "") for name in sorted(SECRET_VARIABLES)}
        return {
            **java,
            **secrets,
            WRITTEN_SETTINGS: str(process.settings_file),
            **python,
            **process.environment,
        }
    variables = settings_environment if process.reads_job_settings else serving_environment
    return {**java, **variables(settings), **python, **process.environment}


def _escaped(path: Path | str) -> str:
    """Escape the percent signs of a path: supervisord expands them, twice in the name of a program's log file."""
    return str(path).replace("%", "%%")


def declarations_digest(folders: tuple[Path, ...]) -> str:
    """Return a digest of the paths and contents of these files, which changes when one is added, removed or changed."""
    digest = hashlib.sha256()
    for directory in (READ_MODELS, *folders):
        for path in sorted(_files(directory)):
            digest.update(hashlib.sha256(str(path.relative_to(directory)).encode()).digest())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files(directory: Path) -> list[Path]:
    return [*directory.rglob("*.py"), *directory.rglob("*.avsc")]
