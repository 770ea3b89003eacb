"""The decoder of staging, which shares no decoder with what it checks."""
