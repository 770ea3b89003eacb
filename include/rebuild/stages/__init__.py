"""The stages of rebuild and rollback, one module each: what Airflow, the command line and the documentation need to know of it.

Modules that do the work are imported when it is done: Airflow reads these files again and again.
"""
