"""The stages of rebuild and rollback, with everything that Airflow, the command line and the documentation need.

A stage imports the modules that do its work only when it runs: Airflow parses these files repeatedly.
"""
