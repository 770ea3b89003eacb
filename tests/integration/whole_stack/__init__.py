"""Tests of the whole stack, including Airflow and the query nodes."""
