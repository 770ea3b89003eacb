"""Where a read model is served from, compared: lookups by key, all items at once, the delay until an item is served, memory."""
