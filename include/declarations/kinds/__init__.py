"""Kinds of declaration that compile to flows: what a flow is, the base class of a kind, and that of lookups of several records."""
