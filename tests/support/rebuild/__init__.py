"""Stages of a rebuild without Airflow, and readers that watch one."""
