"""Settings that pages show in blocks of `ini` are valid: their names are known, and Foldlake accepts their values."""

import io
import os
import re
from pathlib import Path

import pytest
from dotenv import dotenv_values

from include.settings import CHECKOUT, PREFIX, VARIABLES, Settings
from tests.support.documentation.page_blocks import Block, blocks, pages
from tests.support.security.certificates import Authority

SETTINGS_BLOCKS = [block for page in pages() for block in blocks(page, "ini")]
# `${CALLER_CERTIFICATE_DIR:-…}`
COMPOSE_VARIABLE = re.compile(r"\$\{(\w+)")


def values_of(block: Block) -> dict[str, str]:
    """Return the variables of a block, as a file `.env` is read."""
    return {name: value or "" for name, value in dotenv_values(stream=io.StringIO(block.text)).items()}


def compose_variables() -> set[str]:
    """Return the variables that docker-compose.yaml reads."""
    return set(COMPOSE_VARIABLE.findall((CHECKOUT / "docker-compose.yaml").read_text(encoding="utf-8")))


def is_setting(name: str) -> bool:
    """Whether a variable is a setting, or names a file with the value of one."""
    variable = name.removeprefix(PREFIX).lower()
    return name.startswith(PREFIX) and not {variable, variable.removesuffix("_file")}.isdisjoint(VARIABLES)


def test_pages_show_settings() -> None:
    assert SETTINGS_BLOCKS


@pytest.mark.parametrize("block", SETTINGS_BLOCKS, ids=lambda block: block.place)
def test_every_name_is_a_setting(block: Block) -> None:
    unknown = [name for name in values_of(block) if not is_setting(name)]

    assert set(unknown) <= compose_variables()


@pytest.mark.parametrize("block", SETTINGS_BLOCKS, ids=lambda block: block.place)
def test_foldlake_accepts_the_values(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    certificate, key = Authority(tmp_path).issue("localhost")
    headers = tmp_path / "headers"
    headers.write_text("Authorization=Bearer secret")
    for name, value in values_of(block).items():
        # A file of the reader's machine: headers, a key or a certificate.
        file = headers if "HEADERS" in name else key if name.endswith("KEY_FILE") else certificate
        monkeypatch.setenv(name, str(file) if value.startswith("/") and name.endswith("_FILE") else value)

    settings = Settings.of(home=tmp_path)

    assert settings.home == tmp_path
