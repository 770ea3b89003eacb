"""What is removed because it is old: logs, reports, records of ended versions. Each action can be killed and repeated."""
