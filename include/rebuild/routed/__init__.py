"""Which events a version of a topic that routes write, and what folds it, lack."""
