"""Replaces `spark-submit` in Airflow's operators for batch jobs, which end with their launcher.

Called by the scripts in stack/bin, with the Spark environment as the first argument: `lake` (Spark 4.1, Delta) or `stream`. With
`server`, it submits the job server of the lake, which outlives its launcher.
With a local master, such a job runs at a lower priority than the stream driver and the query nodes.
"""

import os
import sys
from pathlib import Path

from include.errors import FoldlakeError
from include.process import die_with_parent, launcher_pid, lower_priority
from include.scratch import scratch_dir
from include.settings import Settings
from include.spark.stream_config import LOCAL_MASTER, stream_master
from stack.launchers.early_python import start_python
from stack.launchers.job_client import run_in_server
from stack.launchers.lake_jvm import lake_command
from stack.launchers.spark_submit import (
    master_of,
    spark_home,
    stream_command,
    submit_environment,
)
from stack.tools import Tools


def main() -> None:
    """Run the job in the home's job server, or execute spark-submit in place of this process."""
    environment_name, arguments = sys.argv[1], sys.argv[2:]
    if environment_name != "server":
        die_with_parent(launcher_pid())
    settings = Settings()
    if environment_name == "lake":
        status = run_in_server(settings, arguments)
        if status is not None:
            sys.exit(status)
    execute(settings, environment_name, arguments)


def execute(settings: Settings, environment_name: str, arguments: list[str]) -> None:
    """Execute spark-submit in place of this process, or print the reason for a failure and exit."""
    tools = Tools(settings.tools)
    is_stream = environment_name == "stream"
    python = tools.stream_python if is_stream else tools.main_python
    scratch = scratch_dir(settings.home / "jobs")
    try:
        master = master_of(arguments)
        if is_stream and master == LOCAL_MASTER:
            master = stream_master(settings)
            arguments[arguments.index("--master") + 1] = master
        command = (
            stream_command(tools, scratch, arguments) if is_stream else submit_lake(tools, scratch, arguments)
        )
        environment = submit_environment(python, scratch, os.environ, master)
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    if master.startswith("local"):
        lower_priority(settings.lake.niceness)
        if is_stream:
            environment = start_python(python, arguments, scratch, environment)
    os.execve(command[0], command, environment)  # noqa: S606


def submit_lake(tools: Tools, scratch: Path, arguments: list[str]) -> list[str]:
    """Return the command that submits one of the lake's applications: a JVM here, spark-submit for a cluster.

    Raises:
        FoldlakeError: a tool is missing, or the arguments are incomplete.
    """
    home = spark_home(tools.main_python)
    if master_of(arguments).startswith("local"):
        return lake_command(tools, home, scratch, arguments)
    # A cluster's driver has the same Hadoop as its workers.
    return [str(home / "bin" / "spark-submit"), "--jars", ",".join(map(str, tools.jars("lake"))), *arguments]


if __name__ == "__main__":
    main()
