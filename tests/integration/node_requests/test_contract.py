"""Schemathesis sends valid and invalid requests for every operation of the contract to a node, and compares each answer with the contract."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from tests.support.node_stack import NodeStack

SETTINGS = Path(__file__).with_name("schemathesis.toml")
RUN = "from schemathesis.cli import schemathesis; schemathesis()"
TIMEOUT_S = 300.0


def test_every_answer_is_in_the_contract(nodes: NodeStack, tmp_path: Path) -> None:
    # The key of the examples.
    nodes.put("1", Decimal("5.00"))
    nodes.writer.flush()
    nodes.wait_until_exact()
    url = f"http://127.0.0.1:{nodes.ports[0]}"
    command = [sys.executable, "-c", RUN, "--config-file", str(SETTINGS), "run", f"{url}/openapi.json"]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )

    assert done.returncode == 0, done.stdout
    assert nodes.is_ready(nodes.ports[0])
