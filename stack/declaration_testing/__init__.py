"""For tests of declarations: the results of the stream driver's plans for some events, without Kafka."""
