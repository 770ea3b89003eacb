"""The query nodes: a materializer and HTTP workers over one local store, and the commands that append events."""
