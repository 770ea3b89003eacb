"""Listings of records over HTTP."""
