"""Who gets in: API keys, tokens, scopes and the audit log."""
