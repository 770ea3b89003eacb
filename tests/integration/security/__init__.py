"""Query nodes whose callers prove who they are."""
