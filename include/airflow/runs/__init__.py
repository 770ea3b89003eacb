"""The runs of DAGs as a whole: which of them build a version, how they are aborted, and which task comes first."""
