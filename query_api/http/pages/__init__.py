"""What the pages of a node have in common: their style, their headers, static files, and errors as pages."""
