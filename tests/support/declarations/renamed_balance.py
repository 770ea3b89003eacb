"""The module of the read model `balance` under another name: a second read model that needs nothing else."""

from pathlib import Path

MODULE = Path("include/read_models/balance/model.py")


def renamed_balance(name: str, *, source_topic: str = "balance") -> str:
    """Return the text of a module with the fold of `balance` as a read model of this name."""
    text = MODULE.read_text(encoding="utf-8")
    text = text.replace('name="balance"', f'name="{name}"')
    text = text.replace('source_topic="balance"', f'source_topic="{source_topic}"')
    # Its paths are those of `balance`.
    return f"{text}\nDECLARATIONS = [READ_MODEL]\n"
