"""The sign-in page, and where a browser goes from there."""

from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Template

from include.html_pages import page_templates

HOME = "/"
MAX_TARGET_CHARACTERS = 2000


def sign_in_page(target: str, fault: str = "", caller: str = "") -> str:
    """Return the page as HTML.

    target: path and query to which a browser goes once it is signed in. fault: why the present credential is not accepted. caller: who is
    signed in already.
    """
    return _template().render(target=own_target(target), fault=fault, caller=caller)


def own_target(target: str) -> str:
    """Return path and query of a page of this node; those of the status page for anything else."""
    # Browsers read a backslash as a slash, and leave out line breaks and tabs: both can lead to another host.
    is_own = (
        target.startswith("/")
        and not target.startswith("//")
        and target.isascii()
        and target.isprintable()
        and "\\" not in target
        and len(target) <= MAX_TARGET_CHARACTERS
    )
    try:
        parts = urlsplit(target)
    except ValueError:
        return HOME
    return target if is_own and not parts.scheme and not parts.netloc else HOME


@cache
def _template() -> Template:
    return page_templates(Path(__file__).parent).get_template("sign_in.html")
