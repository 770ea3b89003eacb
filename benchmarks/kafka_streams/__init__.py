"""Kafka Streams beside Foldlake: the same fold of the same events, on the same broker."""
