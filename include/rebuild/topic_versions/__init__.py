"""The rebuild of everything that folds a topic, from a new version of that topic: built side by side, promoted together."""
