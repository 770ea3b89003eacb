"""What users notice of deploys, as a benchmark."""
