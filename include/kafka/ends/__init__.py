"""Where the records of a partition end, and the transactions behind which records wait."""
