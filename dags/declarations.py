"""No DAG: an import error in Airflow for modules of read models that are left out. The DAGs of the others are not affected."""

from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.settings import Settings

FAILURES = load_catalog(Settings().declaration_folders).failures
if FAILURES:
    raise ReadModelError("\n".join(map(str, FAILURES)))
