"""What a rebuild changes: the candidate compared with the live version, key by key, as values, report and thresholds."""
