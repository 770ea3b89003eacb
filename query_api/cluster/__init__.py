"""What a node knows of the cluster: membership, routing table, versions, and the state that it writes for its workers."""
