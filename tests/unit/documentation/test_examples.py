"""Blocks of code are found in pages, and outputs are compared by their form."""

import re
from pathlib import Path

import pytest

from include.settings import CHECKOUT
from tests.support.documentation import page_blocks
from tests.support.documentation.output_shape import difference, values
from tests.support.documentation.page_blocks import (
    EXECUTABLE,
    RUNS,
    Block,
    Command,
    blocks,
    blocks_run,
    pages,
)

EXCERPT = re.compile(r"<!-- example: not run: an excerpt of (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
PAGE = """# Page

```sh
./foldlake up
```

<!-- example: not run: it does not end -->
```console
$ ./foldlake logs -f
```

1. Save this as `a.py`:

   ```python
   import json
   ```

```console
$ one
1
$ two
```
"""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Block]:
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(page_blocks, "CHECKOUT", tmp_path)
    return blocks("page.md")


def test_blocks_have_their_place_mark_and_file(found: list[Block]) -> None:
    shown = [(block.line, block.language, block.mark, block.file, block.text) for block in found]

    assert shown == [
        (3, "sh", "", "", "./foldlake up\n"),
        (8, "console", "not run", "", "$ ./foldlake logs -f\n"),
        (14, "python", "", "a.py", "import json\n"),
        (18, "console", "", "", "$ one\n1\n$ two\n"),
    ]


def test_a_block_of_a_console_has_commands_with_their_outputs(found: list[Block]) -> None:
    assert list(found[3].commands()) == [Command("one", "1\n"), Command("two", None)]
    assert list(found[0].commands()) == [Command("./foldlake up\n", None)]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ('{"id":"a","position":{"offset":3}}', '{"position":{"offset":4},"id":"b"}'),
        ('[{"a":1}, ...]', '[{"a":2},{"a":3}]'),
        ('{"kept_until":null}', '{"kept_until":"2026-01-01"}'),
        (
            'HTTP/1.1 200 OK\nfoldlake-lag-ms: 734\nfoldlake-role: owner\n\n{"amount":5.00}',
            'HTTP/1.1 200 OK\nserver: x\nfoldlake-lag-ms: 2\nfoldlake-role: standby\n\n{"amount":6.00}',
        ),
        ("kafka  ready  20605  9092  317 MB  24 min  0", "kafka ready 5 19092 1.2 GB 8 s 0"),
        ("...\nlast", "first\nlast"),
        (
            'event: changed\ndata: {"key":"a",\n"state":{"amount":5.00}}',
            'id: 1\nevent: changed\ndata: {"state":{"amount":6.00},"key":"b"}',
        ),
        ('in v1, etag: "1-3.39441.32-a126b2ca"', 'in v12, etag: "2-0.7.1-0bfc3f29"'),
        ("2 records  read", "1 record read"),
    ],
)
def test_outputs_of_one_form_differ_in_values_only(expected: str, actual: str) -> None:
    assert difference(expected, actual) == ""


@pytest.mark.parametrize(
    ("expected", "actual", "named"),
    [
        ('{"amount":5.00}', '{"total":5.00}', "total"),
        ('{"amount":5.00}', '{"amount":"5.00"}', "another type"),
        ('{"amount":5.00}', "Internal error", "no JSON"),
        ('{"windows":[1]}', '{"windows":[]}', "0 elements"),
        ("foldlake-role: owner\n", "HTTP/1.1 200 OK\n", "foldlake-role"),
        ("a\nb", "b\na", "in this order"),
    ],
)
def test_another_form_is_named(expected: str, actual: str, named: str) -> None:
    assert named in difference(expected, actual)


def test_values_of_a_page_have_those_of_an_output_in_their_place() -> None:
    expected, actual = (
        '{"id":"abcde-1","at":{"offset":36131,"partition":1}}',
        '{"id":"x","at":{"offset":7,"partition":0}}',
    )

    assert values(expected, actual) == {"abcde-1": "x", "36131": "7"}


def test_every_example_of_a_page_is_run_by_a_test() -> None:
    without_test = [
        block.place
        for page in pages()
        for block in blocks(page)
        if block.language in EXECUTABLE and block.run not in RUNS and block.mark != "not run"
    ]

    assert without_test == []


def test_an_excerpt_is_in_the_file_that_its_page_names() -> None:
    excerpts = [
        found for page in pages() for found in EXCERPT.findall((CHECKOUT / page).read_text(encoding="utf-8"))
    ]

    assert excerpts
    for file, text in excerpts:
        assert "".join(text.split()) in "".join((CHECKOUT / file).read_text(encoding="utf-8").split()), file


@pytest.mark.parametrize("run", RUNS)
def test_a_test_runs_the_examples_that_name_it(run: str) -> None:
    assert blocks_run(run)
    assert f'blocks_run("{run}")' in (CHECKOUT / RUNS[run]).read_text(encoding="utf-8")


def test_a_test_that_does_the_same_as_an_example_exists() -> None:
    marks = "".join(
        re.findall(r"<!-- example: .+? -->", "".join((CHECKOUT / one).read_text() for one in pages()))
    )
    named = set(re.findall(r"[\w/]*test_\w+\.py", marks))
    existing = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "tests").rglob("test_*.py")}

    assert named
    assert {name for name in named if not any(path.endswith(name) for path in existing)} == set()
