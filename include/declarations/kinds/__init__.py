"""Kinds of declaration that compile to flows: what a flow is, and the base class of a kind."""
