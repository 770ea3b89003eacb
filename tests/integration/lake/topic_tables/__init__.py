"""The event tables of topics."""
