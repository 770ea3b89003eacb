"""Whether a check follows a change of a table, decided before a run of the DAG `quality` is started."""
