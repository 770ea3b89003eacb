"""Takes the pictures of the documentation from a running stack: `PYTHONPATH=. .foldlake/tools/main/bin/python -m tests.support.pictures`."""
