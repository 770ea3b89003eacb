"""Who may call a node: callers and their scopes, API keys and their topic, and the audit log."""
