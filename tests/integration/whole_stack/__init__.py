"""Tests with Airflow and the query nodes up."""
