"""A worker accepts no more connections than it may open files, and the limit of open files is raised as far as needed."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
soft, hard, *wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from query_api.http.limits.connections import allowed_connections
print(allowed_connections(*wanted), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "allowed", "soft_after"),
    [
        (256, 1000, 100, 100, 612),
        (256, 1000, 4096, 488, 1000),
        (900, 1000, 100, 100, 900),
        (64, 64, 4096, 16, 64),
    ],
    ids=["raised", "raised, and still too low", "high enough", "cannot be raised"],
)
def test_connections_and_open_files(soft: int, hard: int, wanted: int, allowed: int, soft_after: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(soft), str(hard), str(wanted)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.split() == [str(allowed), str(soft_after), str(hard)]
    assert ("FOLDLAKE_NODE_HTTP_CONNECTIONS" in done.stderr) == (allowed < wanted)


def test_handshakes_have_files_of_their_own() -> None:
    command = [sys.executable, "-c", PROGRAM, "256", "1000", "100", "200"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["100", "812", "1000"]
