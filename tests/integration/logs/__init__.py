"""The system `logs` on generated lines, against real servers."""
