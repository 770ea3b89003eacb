"""The materializer: consumes changelogs into the local store, and publishes the node's state to the HTTP workers."""
