"""The materializer: consumes changelogs into the local store, and tells the HTTP workers who owns what."""
