"""Code that query nodes and their clients share: routing table, partition reports, HTTP clients and headers."""
