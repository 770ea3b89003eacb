"""What a read model declares (state, folds, topic, API), and how declarations are found."""
