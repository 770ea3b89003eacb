"""Read-model declarations (state, folds, topic, API), and how they are found and loaded."""
