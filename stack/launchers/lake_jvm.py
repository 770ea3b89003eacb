"""The command of a local JVM for the lake's jobs: the one that spark-submit would execute, on a shorter class path and with an archive.

Each class that is loaded, and each name of one that does not exist, was looked for in almost 300 jars: a fifth of the processor time of a
check of few events. The archive (stack/train_lake.py) has the loaded classes of this class path.
Source of the options: `org.apache.spark.launcher.JavaModuleOptions` of Spark 4.1.1.
"""

from collections.abc import Sequence
from pathlib import Path

from stack.launchers.stream_jvm import MODULE_OPTIONS, jvm_command, local_class_path
from stack.tools import Tools

# Some options are not those of every Java from 17 to 25. Without `--add-modules=jdk.incubator.vector`, as in the stream's JVM.
LAKE_MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *MODULE_OPTIONS,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)
# On the standard output, of an archive that does not fit; and of classes that it cannot contain.
NO_ARCHIVE_WARNINGS = "-Xlog:cds*=off"


def lake_command(
    tools: Tools, spark_home: Path, scratch: Path, arguments: Sequence[str], new_archive: Path | None = None
) -> list[str]:
    """Return the command that runs spark-submit's arguments in a local JVM with the prepared Java.

    Args:
        tools: where Java, the connectors and the archive are.
        spark_home: Spark of the lake's jobs.
        scratch: the folder for temporary files.
        arguments: those of spark-submit; the configuration names the memory and the Java options of the driver.
        new_archive: a file to which the JVM writes its classes when it ends, instead of reading them from the archive.

    Raises:
        FoldlakeError: a tool is missing, or the configuration lacks the driver's memory.
    """
    # Before Spark's own: its Hadoop fails at login on Java 24 and later.
    jars = [*tools.hadoop_client, *local_class_path(spark_home, tools.jars("lake"))]
    if new_archive is not None:
        archive = f"-XX:ArchiveClassesAtExit={new_archive}"
    else:
        archive = archive_option(tools.lake_archive)
    return jvm_command(
        tools.java, jars, scratch, arguments, archive, (*LAKE_MODULE_OPTIONS, NO_ARCHIVE_WARNINGS)
    )


def archive_option(archive: Path) -> str:
    """Return the option of a JVM that reads its classes from an archive, if there is one; an archive that does not fit is not read."""
    return f"-XX:SharedArchiveFile={archive}" if archive.is_file() else ""
