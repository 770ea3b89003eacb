"""Converts pip's configuration (index, certificates, timeouts) for uv, which does not read it."""

import ast
import os
import subprocess
from pathlib import Path

# pip's name -> uv's environment variable. https://docs.astral.sh/uv/reference/environment/
NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
# Takes a second; on a busy machine, more than a minute was measured.
PIP_TIMEOUT_S = 600


def uv_environment(pip_python: Path) -> dict[str, str]:
    """Return environment variables for uv from the configuration of this interpreter's pip, except those already set."""
    done = subprocess.run(
        [pip_python, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        timeout=PIP_TIMEOUT_S,
        check=False,
    )
    wanted = {
        # The interpreter is passed by its path; uv must not download another one.
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy" if os.environ.get("UV_LINK_MODE") == "copy" else "hardlink",
        **translate(done.stdout),
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}


def translate(pip_config_list: str) -> dict[str, str]:
    """Translate the output of `pip config list`: lines such as `global.index-url='https://…'`."""
    variables: dict[str, str] = {}
    for line in pip_config_list.splitlines():
        key, _, quoted = line.partition("=")
        section, _, name = key.strip().rpartition(".")
        variable = NAMES.get(name)
        if variable is None or section not in {"global", "install", ":env:"}:
            continue
        value = str(ast.literal_eval(quoted.strip()))
        # pip separates multiple values by white space; so does uv, except for find-links, which it separates by commas.
        variables[variable] = (",".join if variable == "UV_FIND_LINKS" else " ".join)(value.split())
    return variables
