"""Faults that tests cause: records of other programs, broken connections, full disks."""
