"""Code that the Spark jobs, the query API, the DAGs and the command line share."""

import sys
from pathlib import Path

# The package `foldlake`, which declarations import. `foldlake` beside this folder is the command.
_PUBLIC = str(Path(__file__).parent / "public")
if _PUBLIC not in sys.path:
    sys.path.append(_PUBLIC)
