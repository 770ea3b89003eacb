"""The read models. Each is a module that assigns `READ_MODEL`, or a package with `model.py`, event schemas and an API."""
