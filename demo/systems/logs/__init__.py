"""The system `logs`: what the log lines of a web shop say of its products and its browsers."""
