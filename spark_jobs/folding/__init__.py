"""From source records to states: decoding, folding, and replaying the log."""
