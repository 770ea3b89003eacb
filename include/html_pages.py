"""HTML pages from Jinja templates, which escape what they show."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

REPORT_CSS = Path(__file__).with_name("report_page.css")


def page_templates(folder: Path) -> Environment:
    """Return the templates in a folder. `report_css` in them is the style that reports share."""
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["report_css"] = Markup(REPORT_CSS.read_text(encoding="utf-8"))  # noqa: S704 - a file of the checkout
    return environment
