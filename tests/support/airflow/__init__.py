"""What tests of a whole stack have in common."""
