"""The system `pos` on a sample of its data, against real servers."""
