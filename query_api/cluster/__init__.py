"""A node's view of the cluster: membership, routing table, versions, and the state that it publishes to its HTTP workers."""
