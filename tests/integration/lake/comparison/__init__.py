"""What a rebuild changes."""
