"""Lists records page by page: of one partition on this node, or of a whole read model from all nodes."""
