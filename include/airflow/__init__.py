"""What the DAGs and the command line share of Airflow: names, tasks, operators, and a client of its REST API."""
