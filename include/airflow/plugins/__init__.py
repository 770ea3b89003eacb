"""Airflow's plugins folder: Airflow loads each module in it."""
