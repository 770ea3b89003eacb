"""The commands of the lake's jobs: a JVM with an archive of its classes here, spark-submit for a cluster."""

import re
import subprocess
from pathlib import Path

import pytest

from include.settings import Settings
from include.spark.lake_config import lake_config
from stack.launchers.batch_submit import submit_lake
from stack.launchers.lake_jvm import LAKE_MODULE_OPTIONS, NO_ARCHIVE_WARNINGS, archive_option
from stack.tools import Tools

MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
ARGUMENTS = ["--master", "local[2]", "--conf=spark.driver.memory=512m", "job.py"]


@pytest.fixture
def tools() -> Tools:
    return Tools(Settings().tools)


def test_a_local_job_is_a_jvm_of_the_prepared_java_with_the_connectors(tools: Tools, tmp_path: Path) -> None:
    command = submit_lake(tools, tmp_path, ARGUMENTS)

    jars = command[command.index("-cp") + 1].split(":")
    assert command[0] == str(tools.java)
    assert command[command.index(MAIN_CLASS) + 1 :] == ARGUMENTS
    assert jars[-len(tools.jars("lake")) :] == [str(jar) for jar in tools.jars("lake")]
    # Hadoop of the lake's own Spark cannot log in on each supported Java.
    first = jars[: len(tools.hadoop_client)]
    assert [re.sub(r".*/(hadoop-client-\w+)-(\d+\.\d+)\..*", r"\1 \2", jar) for jar in first] == [
        "hadoop-client-api 3.5",
        "hadoop-client-runtime 3.5",
    ]


def test_a_cluster_gets_the_jars_from_spark_submit(tools: Tools, tmp_path: Path) -> None:
    command = submit_lake(tools, tmp_path, ["--master", "spark://127.0.0.1:7077", "job.py"])

    assert Path(command[0]).name == "spark-submit"
    assert len(command[command.index("--jars") + 1].split(",")) == len(tools.jars("lake"))
    # Its Hadoop is that of its workers.
    assert "hadoop" not in " ".join(command)


def test_the_prepared_java_accepts_every_option(tools: Tools) -> None:
    options = [*LAKE_MODULE_OPTIONS, *lake_config(Settings().lake)["spark.driver.extraJavaOptions"].split()]

    banner = subprocess.run([tools.java, *options, "-version"], capture_output=True, text=True, check=True)

    assert 'version "' in banner.stderr
    assert "WARNING" not in banner.stderr


def test_the_archive_is_valid_for_the_command_of_a_job(tools: Tools, tmp_path: Path) -> None:
    assert tools.lake_archive.is_file(), "the training has failed: see the output of ./foldlake prepare"
    command = submit_lake(tools, tmp_path, ARGUMENTS)
    end = command.index(MAIN_CLASS)

    # Any mismatch of class path or options is an error here; a job would only start more slowly.
    done = subprocess.run(
        [*command[:end], "-Xshare:on", "-Xlog:class+load", MAIN_CLASS, "--version"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{MAIN_CLASS} source: shared objects file (top)" in done.stdout


def test_without_an_archive_there_is_no_option(tmp_path: Path) -> None:
    assert archive_option(tmp_path / "missing.jsa") == ""


def test_an_archive_that_does_not_fit_is_silently_ignored(tools: Tools, tmp_path: Path) -> None:
    archive = tmp_path / "other.jsa"
    archive.write_text("of another Java")
    options = [NO_ARCHIVE_WARNINGS, archive_option(archive)]

    # The runtime of the stream is another Java, which warns of what this one ignores.
    for java in (tools.java, tools.java25):
        done = subprocess.run([java, *options, "-version"], capture_output=True, text=True, check=True)
        assert done.stdout == ""
