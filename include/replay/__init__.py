"""Events of a topic, decoded without Spark: the second decoder, which shares no decoder with the stream."""
