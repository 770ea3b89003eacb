"""The commands of the stream's Spark applications: a JVM with Java 25 here, spark-submit for a cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from include.errors import SettingsError
from include.process import lower_threads
from include.settings import CHECKOUT, Settings
from include.spark.stream_config import stream_config
from spark_jobs.runtime.session import C2_NICENESS, C2_THREADS
from stack.launchers.spark_submit import LOGGING, stream_command
from stack.launchers.stream_jvm import MODULE_OPTIONS, configuration, jvm_command
from stack.provisioning.trainings import JAVA_VARIABLES
from stack.tools import Tools
from tests.support.waiting import wait_until

ARGUMENTS = ["--master", "local[4]", "--conf=spark.driver.memory=512m", "job.py", "--conf", "a=b"]


@pytest.fixture
def tools() -> Tools:
    return Tools(Settings().tools)


def test_configuration_is_what_precedes_the_application() -> None:
    arguments = [
        "--master",
        "local[4]",
        "--conf=a=b=c",
        "--conf",
        "d=e",
        "--name",
        "--conf",
        "app.py",
        "--conf=f=g",
    ]

    assert configuration(arguments) == {"a": "b=c", "d": "e"}


def test_command_has_the_memory_and_java_options_of_the_configuration() -> None:
    options = "--conf=spark.driver.extraJavaOptions=-Dx=1 -XX:+UseParallelGC"

    command = jvm_command(Path("java"), [Path("a.jar"), Path("b.jar")], Path("tmp"), [options, *ARGUMENTS])

    assert command[:4] == ["java", "-Xmx512m", "-Dx=1", "-XX:+UseParallelGC"]
    assert command[command.index("-cp") + 1] == "a.jar:b.jar"
    assert command[-len(ARGUMENTS) - 2 :] == ["org.apache.spark.deploy.SparkSubmit", options, *ARGUMENTS]


def test_arguments_without_memory_are_refused() -> None:
    with pytest.raises(SettingsError, match="memory"):
        jvm_command(Path("java"), [], Path("tmp"), ["--master", "local[4]", "job.py"])


@pytest.mark.parametrize(
    ("message", "is_logged"),
    [
        ("Aborting task", False),
        ("Aborted commit for partition 2 (task 14, attempt 0, stage 3.0)", False),
        (
            "[queryId = 1fb15] Lost task 0.0 in stage 3.0 (TID 12): TaskKilled (Stage cancelled: Query was stopped)",
            False,
        ),
        ("[queryId = 1fb15] Lost task 0.0 in stage 3.0 (TID 12): java.lang.ArithmeticException", True),
        ("Exception in task 0.0 in stage 3.0 (TID 12)", True),
        ("Query balance/v1 [id = 1, runId = 2] terminated with error", True),
    ],
)
def test_the_driver_logs_failures_and_not_each_stop_of_a_query(message: str, *, is_logged: bool) -> None:
    path = CHECKOUT / "include" / "spark" / "driver_log.properties"
    (line,) = [line for line in path.read_text(encoding="utf-8").splitlines() if ".regex = " in line]
    denied = line.partition(" = ")[2].replace("\\\\", "\\")

    assert (re.fullmatch(denied, message) is None) == is_logged
    assert f"-Dlog4j2.configurationFile={path}" in LOGGING


def test_java_25_accepts_every_option(tools: Tools) -> None:
    options = [*MODULE_OPTIONS, *stream_config(Settings())["spark.driver.extraJavaOptions"].split()]

    banner = subprocess.run([tools.java25, *options, "-version"], capture_output=True, text=True, check=True)

    assert 'version "25' in banner.stderr
    assert "WARNING" not in banner.stderr


def test_a_local_driver_reads_the_cache_and_writes_a_new_one_on_request(tools: Tools, tmp_path: Path) -> None:
    assert tools.driver_cache.is_file(), "the training has failed: see the output of ./foldlake prepare"

    assert f"-XX:AOTCache={tools.driver_cache}" in stream_command(tools, tmp_path, ARGUMENTS)
    written = stream_command(tools, tmp_path, ARGUMENTS, tmp_path / "new.aot")
    assert f"-XX:AOTCacheOutput={tmp_path / 'new.aot'}" in written
    assert not any("-XX:AOTCache=" in option for option in written)


def test_the_cache_is_valid_for_the_command_of_a_driver(tools: Tools, tmp_path: Path) -> None:
    command = stream_command(tools, tmp_path, ARGUMENTS)
    end = command.index("org.apache.spark.deploy.SparkSubmit")

    # Any mismatch of class path or options is an error here; a driver would only start more slowly.
    done = subprocess.run(
        [*command[:end], "-XX:AOTMode=on", command[end], "--version"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "version 4.3.0" in done.stderr


def test_a_cluster_gets_the_jars_from_spark_submit(tools: Tools, tmp_path: Path) -> None:
    arguments = ["--master", "spark://127.0.0.1:7077", "job.py"]

    command = stream_command(tools, tmp_path, arguments)

    assert Path(command[0]).name == "spark-submit"
    assert len(command[command.index("--jars") + 1].split(",")) == len(tools.jars("stream"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no nice values of threads")
def test_the_second_compiler_of_java_25_has_the_name_by_which_it_gets_a_lower_priority(tools: Tools) -> None:
    server = [str(tools.java25), "-m", "jdk.httpserver", "-b", "127.0.0.1", "-p", "0"]
    # Options of the tests' own may leave the compiler out.
    environment = {name: value for name, value in os.environ.items() if name not in JAVA_VARIABLES}
    process = subprocess.Popen(server, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_until(
            lambda: lower_threads(process.pid, C2_THREADS, C2_NICENESS) >= 1, "the JVM has its compilers"
        )
    finally:
        process.kill()
        process.wait()
