"""Actions of each browser in hopping windows of event time: the routes, the read model, its API."""
