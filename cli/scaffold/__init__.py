"""New declarations from templates: a working file, its schema, its test and its page."""
