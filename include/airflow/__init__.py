"""Airflow code that the DAGs and the command line share: names, tasks, operators, and a client of its REST API."""
