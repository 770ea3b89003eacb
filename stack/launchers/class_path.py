"""The class path of the stream's JVM: Spark's jars without those of parts that a driver on this machine does not use.

Generated code names classes that do not exist, and for each of them the JVM looks into every jar; some of the jars left out also
register extensions that each session loads. Together they cost a start seconds.
"""

from collections.abc import Iterable
from pathlib import Path

# Names of jars begin with these. What remains can read and write every format and file system that the whole of it can.
UNUSED = (
    # Machine learning and graphs.
    *("JLargeArrays", "JTransforms", "algebra_", "arpack", "blas", "breeze", "cats-kernel", "lapack"),
    *("spark-graphx_", "spark-mllib_", "spire"),
    # Hive's metastore and its server. Without hive-storage-api, whose classes ORC uses.
    *(
        "HikariCP",
        "ST4",
        "antlr-runtime",
        "commons-dbcp",
        "datanucleus",
        "derby",
        "hive-beeline",
        "hive-cli",
        "hive-common",
    ),
    *(
        "hive-exec",
        "hive-jdbc",
        "hive-metastore",
        "hive-serde",
        "hive-service",
        "hive-shims",
        "javax.jdo",
        "javolution",
    ),
    *(
        "jdo-api",
        "jpam",
        "jta",
        "libfb303",
        "libthrift",
        "opencsv",
        "oro-",
        "spark-hive",
        "stax-api",
        "super-csv",
    ),
    *("transaction-api",),
    # Kubernetes and YARN.
    *("kubernetes-", "jjwt-", "spark-kubernetes_", "spark-yarn_", "vertx-", "volcano-", "zjsonpatch"),
    # The interactive shell, and Spark Connect's server.
    *("connect-repl", "jline", "scala-compiler", "spark-connect_", "spark-pipelines_", "spark-repl_"),
)


def local_class_path(spark_home: Path, connectors: Iterable[Path]) -> list[Path]:
    """Return the jars of a local driver: those of Spark that it may use, sorted, then the connectors."""
    jars = sorted((spark_home / "jars").glob("*.jar"))
    return [*(jar for jar in jars if not jar.name.startswith(UNUSED)), *connectors]
