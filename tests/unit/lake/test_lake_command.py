"""A lake job on this machine has a Hadoop that logs in on every supported Java; one on a cluster has that of the cluster."""

import re

from include.settings import Settings
from stack.launchers.batch_submit import lake_command
from stack.tools import Tools


def test_a_local_job_has_the_newer_hadoop_before_sparks_own() -> None:
    tools = Tools(Settings().tools)

    command = lake_command(tools, ["--master", "local[2]", "job.py"])

    class_path = command[command.index("--driver-class-path") + 1].split(":")
    assert class_path == [str(jar) for jar in tools.hadoop_client]
    assert [re.sub(r".*/(hadoop-client-\w+)-(\d+\.\d+)\..*", r"\1 \2", jar) for jar in class_path] == [
        "hadoop-client-api 3.5",
        "hadoop-client-runtime 3.5",
    ]
    assert command[-3:] == ["--master", "local[2]", "job.py"]


def test_a_job_on_a_cluster_has_the_hadoop_of_its_workers() -> None:
    command = lake_command(Tools(Settings().tools), ["--master", "spark://master:7077", "job.py"])

    assert "--driver-class-path" not in command
