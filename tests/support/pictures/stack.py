"""A fresh clone with a stack of its own, in which a rule of the demo changes."""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from include.airflow.client import AirflowApi, airflow_api
from include.settings import CHECKOUT, Settings

MODEL = Path("include/read_models/balance/model.py")
LOOKUP = "/api/customers.getBalance"


class Clone:
    """A clone of this checkout. folder: where it is. home: FOLDLAKE_HOME of its stack."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.settings = Settings.of(home=home)
        self._environment = os.environ | {"FOLDLAKE_HOME": str(home), "FOLDLAKE_TOOLS": str(Settings().tools)}

    @property
    def airflow(self) -> AirflowApi:
        """A client of the stack's Airflow."""
        return airflow_api(self.settings.home, self.settings.airflow)

    def node_url(self, number: int = 1) -> str:
        """Return the URL of a node; the first is 1."""
        return f"http://127.0.0.1:{self.settings.query_ports[number - 1]}"

    def foldlake(self, *arguments: str) -> str:
        """Run a command of the clone, and return its output; its errors are printed. Raises CalledProcessError."""
        command = [str(self.folder / "foldlake"), *arguments]
        done = subprocess.run(
            command, env=self._environment, cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    def add_fold(self, revision: int, amount: str) -> str:
        """Add a fold revision to the balance's module; return the line that is new."""
        module = self.folder / MODEL
        line = f'{revision}: {{"amount": "{amount}"}},'
        text = module.read_text(encoding="utf-8")
        if revision == 2:
            head, _, rest = text.partition("    folds={1: ")
            first, _, tail = rest.partition("},\n")
            text = f"{head}    folds={{\n        1: {first},\n        {line}\n    }},\n{tail}"
        else:
            head, _, tail = text.partition("    },\n    key_doc")
            text = f"{head}        {line}\n    }},\n    key_doc{tail}"
        module.write_text(text, encoding="utf-8")
        return line

    def withdraw(self, customers: range, amount: str) -> None:
        """Withdraw an amount from each of these customers' balances."""
        for number in customers:
            body = {"customerId": str(number), "amount": amount}
            httpx.post(
                f"{self.node_url()}/api/balance.withdrawFunds", json=body, timeout=30
            ).raise_for_status()

    def balance(self, customer: str) -> httpx.Response:
        """Look up a balance on the second node."""
        found = httpx.get(f"{self.node_url(2)}{LOOKUP}", params={"customerId": customer}, timeout=30)
        return found.raise_for_status()


@contextmanager
def running_clone() -> Iterator[Clone]:
    """Clone this checkout, run the demo in it on the default ports, and remove both at the end."""
    folder = Path(tempfile.mkdtemp(prefix="foldlake-pictures-"))
    clone = Clone(folder / "clone", folder / "home")
    try:
        subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone.folder)], check=True)
        clone.foldlake("demo")
        yield clone
    finally:
        clone.foldlake("down")
        shutil.rmtree(folder, ignore_errors=True)


class Lookups:
    """Looks balances up on both nodes by turns, those of the customers who have one.

    answered, failed: the number of answers with status 200, and of all others.
    """

    def __init__(self, clone: Clone, customers: range) -> None:
        self.answered = 0
        self.failed = 0
        self._client = httpx.Client(timeout=30)
        urls = [
            f"{clone.node_url(node)}{LOOKUP}?customerId={number}" for number in customers for node in (1, 2)
        ]
        self._urls = itertools.cycle(url for url in urls if self._client.get(url).is_success)

    def look_up(self) -> None:
        """Look up the next balance."""
        try:
            is_ok = self._client.get(next(self._urls)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            is_ok = False
        self.answered += is_ok
        self.failed += not is_ok
