"""The partition of a key, computed by Kafka's own Java client in native Spark columns without a Python worker."""

from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql.functions import lit

KAFKA_UTILS = "org.apache.kafka.common.utils.Utils"
POSITIVE = 0x7FFFFFFF


def partition_of_key(key: Column, partitions: int) -> Column:
    """Return the partition that the Java client's default partitioner assigns to each key, a binary column; null for null.

    Source: org.apache.kafka.clients.producer.internals.BuiltInPartitioner.partitionForKey.
    """
    return _murmur2(key).bitwiseAND(lit(POSITIVE)) % lit(partitions)


def _murmur2(key: Column) -> Column:
    # SQL functions cannot pass bytes to a static Java method; Spark's own expression StaticInvoke can.
    jvm: Any = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]  # noqa: SLF001
    expressions = jvm.org.apache.spark.sql.classic.ExpressionUtils
    sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    invoked = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.org.apache.spark.util.Utils.classForName(KAFKA_UTILS, True, False),  # noqa: FBT003 - load it, not Spark's own
        jvm.org.apache.spark.sql.types.DataTypes.IntegerType,
        "murmur2",
        sequence([expressions.expression(key._jc)]),  # noqa: SLF001
        sequence([]),  # no types to cast the arguments to
        True,  # noqa: FBT003 - null for a null key
        False,  # noqa: FBT003 - and only for a null key
        True,  # noqa: FBT003 - deterministic
        jvm.scala.Option.empty(),
    )
    return Column(expressions.column(invoked))
