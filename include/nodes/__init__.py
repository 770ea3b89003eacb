"""What query nodes and those who ask them share: routing table, partition reports, HTTP clients and headers."""
