"""The read models: for each a module that assigns `READ_MODEL`, or a package with `model.py`, its event schemas and its API."""
