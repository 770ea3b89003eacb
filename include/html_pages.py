"""HTML pages from Jinja templates, which escape what they show."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader


def page_templates(folder: Path) -> Environment:
    """Return the templates in a folder."""
    return Environment(loader=FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True)
