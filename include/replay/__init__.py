"""The replay of a log without Spark, with a decoder and an engine that the stream does not use; and what the engines of quality checks share."""
