"""The folder of Airflow's plugins: Airflow imports every file here."""
