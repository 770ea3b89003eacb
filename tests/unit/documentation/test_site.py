"""The site builds without a warning, loads nothing from other hosts, and has its libraries as they were published."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from cli.documentation import site
from include.settings import CHECKOUT, Settings
from tests.support.browser.chromium import LOAD_TIMEOUT_S, chromium, missing_browser

DOCS = CHECKOUT / "docs"
VENDOR = DOCS / "assets" / "vendor"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.build(Settings().tools, folder)
    return folder


class Loaded(HTMLParser):
    """Collects what a browser loads with a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the URL of an element that loads one."""
        names = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "srcset"}
        values = dict(attrs)
        if tag in names and values.get("rel") != "canonical":
            self.urls += [values.get(names[tag]) or ""]


def pages(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*.html"))


def test_every_page_is_on_the_site(built: Path) -> None:
    names = (path.relative_to(DOCS) for path in DOCS.rglob("*.md") if "vendor" not in path.parts)
    expected = {
        name.with_name("index.html") if name.name == "README.md" else name.with_suffix(".html")
        for name in names
    }

    on_site = {page.relative_to(built) for page in pages(built)}
    assert expected - on_site == set()
    assert {Path("index.html"), Path("changelog.html"), Path("contributing.html")} <= on_site


def test_no_page_loads_anything_from_another_host(built: Path) -> None:
    loaded = {url for page in pages(built) for url in Loaded(page.read_text(encoding="utf-8")).urls}

    assert {url for url in loaded if "//" in url} == set()
    assert any(url.endswith("mermaid.js") for url in loaded)


def test_every_loaded_file_exists(built: Path) -> None:
    missing = {
        f"{page.relative_to(built)}: {url}"
        for page in pages(built)
        # Its links are absolute, for any path.
        if page.name != "404.html"
        for url in Loaded(page.read_text(encoding="utf-8")).urls
        if url and not url.startswith("data:") and not (page.parent / url.partition("?")[0]).exists()
    }

    assert missing == set()


def test_no_list_or_table_is_left_as_text(built: Path) -> None:
    left = re.compile(r"<p>[^<]*\n(?:[-*] |\d+\. |\|[ -])|^\|.*\|$", re.MULTILINE)

    assert [page.name for page in pages(built) if left.search(prose_of(page))] == []


def prose_of(page: Path) -> str:
    return re.sub(r"<pre.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_a_linked_file_of_the_checkout_has_a_page(built: Path) -> None:
    page = built / "source" / "include" / "read_models" / "balance" / "model.py.html"

    assert "READ_MODEL" in page.read_text(encoding="utf-8")
    assert 'href="source/include/read_models/balance/model.py.html"' in (built / "index.html").read_text()


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
def test_a_browser_draws_diagrams_and_searches_without_a_network(built: Path) -> None:
    with chromium() as browser:
        browser.get((built / "architecture.html").as_uri())
        waiting = WebDriverWait(browser, LOAD_TIMEOUT_S)
        # A drawn diagram takes the place of its text.
        waiting.until(lambda _: browser.find_elements(By.CSS_SELECTOR, "div.mermaid"))
        waiting.until(lambda _: not browser.find_elements(By.CSS_SELECTOR, "pre.mermaid"))
        browser.get(f"{(built / 'index.html').as_uri()}?q=degraded")
        waiting.until(lambda _: browser.find_elements(By.CSS_SELECTOR, ".md-search-result__article"))

        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]  # of Selenium


def test_a_broken_link_a_missing_anchor_and_an_orphan_page_are_errors(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = copied_checkout(tmp_path)
    with (checkout / "docs" / "tutorial.md").open("a", encoding="utf-8") as page:
        page.write("\n[a](no-such-page.md) [b](../README.md#no-such-heading) [c](../no/such/file.py)\n")
    (checkout / "docs" / "orphan.md").write_text("# Orphan\n")
    monkeypatch.setattr(site, "CHECKOUT", checkout)

    with pytest.raises(site.SiteError):
        site.build(Settings().tools, tmp_path / "site")

    printed = capfd.readouterr().err
    for named in ("no-such-page.md", "#no-such-heading", "no/such/file.py", "orphan.md"):
        assert named in printed


def copied_checkout(folder: Path) -> Path:
    """Copy what the site is made of: the tracked files that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file() and not name.startswith("benchmarks/"):
            (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / "checkout" / name)
    return folder / "checkout"


def test_the_libraries_are_as_published() -> None:
    listed = dict(
        re.findall(
            r"^\| `([\w./-]+)` .*`([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE
        )
    )
    scripts = {path.relative_to(VENDOR).as_posix(): path for path in VENDOR.rglob("*.js")}

    assert listed == {name: sha256(path.read_bytes()).hexdigest() for name, path in scripts.items()}
