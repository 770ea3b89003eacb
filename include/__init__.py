"""Code that the Spark jobs, the query API, the DAGs and the command line share."""
