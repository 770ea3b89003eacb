"""The limits of a query node's HTTP server, which runs alone."""
