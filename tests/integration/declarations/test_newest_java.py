"""The broker and the lake's Spark run on the newest Java that README names, where one is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import CHECKOUT
from stack.components import kafka
from stack.provisioning.java import Java, JavaNotFoundError, candidates, examine
from tests.support.temporary_stack import temporary_settings
from tests.support.waiting import wait_until

# The first without the Security Manager, which old versions of Hadoop need.
FIRST_JAVA = 24
DEADLINE_S = 120.0
# A table that is written, merged into and counted.
LAKE_PROGRAM = """
import sys
from delta.tables import DeltaTable
from include.settings import Settings
from pathlib import Path
from stack.declaration_testing.session import lake_session

with lake_session(Settings(), Path(sys.argv[1]), cores=1) as spark:
    table = f"{sys.argv[1]}/table"
    spark.range(10).write.format("delta").save(table)
    new = spark.range(5, 15).alias("new")
    DeltaTable.forPath(spark, table).alias("old").merge(new, "old.id = new.id").whenNotMatchedInsertAll().execute()
    version = spark._jvm.System.getProperty("java.specification.version")
    print(version, spark.read.format("delta").load(table).count())
"""


def installed_javas() -> list[Java]:
    """Return the supported installations of this machine that are new enough."""
    found = []
    for binary in candidates(dict(os.environ)):
        try:
            java = examine(binary)
        except JavaNotFoundError:
            continue
        if java.version >= FIRST_JAVA:
            found.append(java)
    return found


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Java:
    """The newest Java, as this process's own."""
    javas = installed_javas()
    if not javas:
        pytest.skip(f"no Java from {FIRST_JAVA} on is installed on this machine")
    newest = max(javas, key=lambda java: java.version)
    monkeypatch.setenv("JAVA_HOME", str(newest.home))
    return newest


def test_delta_tables_are_merged(java: Java, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LAKE_PROGRAM, str(tmp_path)]

    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert done.stdout.split() == [str(java.version), "15"], done.stderr


def test_the_broker_answers(java: Java, tmp_path: Path) -> None:
    settings = temporary_settings(tmp_path)
    kafka.prepare(settings)
    (broker,) = kafka.processes(settings)
    assert Path(broker.command[0]).is_relative_to(java.home)

    with subprocess.Popen(broker.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(broker.is_ready, "the broker answers", DEADLINE_S)
        finally:
            process.kill()
