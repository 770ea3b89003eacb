"""What Airflow's web page shows of Foldlake: labels of forms, notes with links to reports, details of asset events."""
