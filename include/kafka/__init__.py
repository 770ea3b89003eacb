"""Topics, reading a topic as a log, the wire format, schemas, events and state records."""
