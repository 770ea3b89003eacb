"""Tests of what the stream driver folds, rejects and refuses."""
