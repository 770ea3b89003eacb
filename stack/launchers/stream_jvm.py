"""The command of a local JVM for the stream's Spark applications: the one that spark-submit would execute, with three differences.

It names the ahead-of-time cache of the class path (stack/train_driver.py), and no other JVM is started to compute it. The class path
lacks Spark's jars of parts that a driver on this machine does not use: generated code names classes that do not exist, and for each of
them the JVM looks into every jar; some of these jars also register extensions that each session loads. Together they cost a start seconds.
Source of the options: `org.apache.spark.launcher.JavaModuleOptions` and `SparkSubmitCommandBuilder` of Spark 4.3.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from include.errors import SettingsError

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


# Spark's own, without a package that Java 25 does not have, and without `--add-modules=jdk.incubator.vector`: the packaged Java lacks
# that module, which only Spark's machine learning uses.
OPENED = (
    *(
        f"java.base/java.{package}"
        for package in (
            "lang",
            "lang.invoke",
            "lang.reflect",
            "io",
            "net",
            "nio",
            "util",
            "util.concurrent",
            "util.concurrent.atomic",
        )
    ),
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
MODULE_OPTIONS = (
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"


def jvm_command(
    java: Path,
    jars: Sequence[Path],
    scratch: Path,
    arguments: Sequence[str],
    cache: str = "",
    module_options: Sequence[str] = MODULE_OPTIONS,
) -> list[str]:
    """Return the command that runs spark-submit's arguments in a JVM.

    Args:
        java: the `java` binary.
        jars: the class path: Spark's jars and the connectors. The cache is valid for one order of them.
        scratch: the folder for temporary files.
        arguments: those of spark-submit; the configuration names the memory and the Java options of the driver.
        cache: the option that reads or writes the ahead-of-time cache, or the archive of classes; empty for none.
        module_options: those that Spark needs.

    Raises:
        SettingsError: the configuration lacks the driver's memory.
    """
    config = configuration(arguments)
    if "spark.driver.memory" not in config:
        raise SettingsError("The arguments of spark-submit lack spark.driver.memory.")
    return [
        str(java),
        f"-Xmx{config['spark.driver.memory']}",
        *config.get("spark.driver.extraJavaOptions", "").split(),
        *module_options,
        f"-Djava.io.tmpdir={scratch}",
        *([cache] if cache else []),
        "-cp",
        ":".join(map(str, jars)),
        MAIN_CLASS,
        *arguments,
    ]


def configuration(arguments: Sequence[str]) -> Mapping[str, str]:
    """Return Spark's settings in spark-submit's arguments: `--conf=name=value` or `--conf name=value`, before the application."""
    found = {}
    remaining = iter(arguments)
    for argument in remaining:
        if not argument.startswith("--"):
            break
        option, has_value, value = argument.partition("=")
        if not has_value and not (value := next(remaining, "")):
            break
        if option == "--conf":
            name, _, setting = value.partition("=")
            found[name] = setting
    return found
