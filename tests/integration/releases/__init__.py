"""What happens to a running system between releases, and after it is lost: docs/how-to/upgrade.md and backup.md, step by step."""
