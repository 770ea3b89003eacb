"""What further read models of one source cost."""
