"""Words of texts for people."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, which is in the singular: `1 key`, `2,000 keys`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
