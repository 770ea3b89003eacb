"""Delta tables: made, merged into, replaced and kept small."""
