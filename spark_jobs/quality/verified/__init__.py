"""Verified records: kept by checks that pass, so that an incremental check replays only the events since."""
