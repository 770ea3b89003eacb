"""What tests of declarations share."""
