"""The system `pos` in a whole stack, with Airflow and both query nodes."""
