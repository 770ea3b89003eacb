"""`python -m tests.integration.declarations.run_block`: runs a block of docs/how-to/test-a-rule.md, from standard input, and prints its states.

The block refers to the read model of the page as DEPOSITS.
"""

import sys
from decimal import Decimal

from include.declarations.load import load_catalog
from include.settings import Settings


def main() -> None:
    """Run the block."""
    models = load_catalog(Settings().declaration_folders).models
    names = {"DEPOSITS": models["deposits-per-day"], "Decimal": Decimal}
    exec(sys.stdin.read(), names)  # noqa: S102 - the page's own code
    print(names["states"])  # noqa: T201


if __name__ == "__main__":
    main()
