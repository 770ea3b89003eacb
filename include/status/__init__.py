"""The one status document: every flow of the stream with its progress, measured on its topics."""
