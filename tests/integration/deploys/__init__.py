"""`./foldlake up` on a running stack: what it replaces, and what goes on meanwhile."""
