"""For tests of declarations: what a read model, a route or an emission makes of some events, with Spark and without Kafka."""
