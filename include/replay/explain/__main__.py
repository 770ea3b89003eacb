"""Program: reads the events of one key from the log and folds them with DuckDB. Writes nothing but its result.

Where DuckDB cannot fold, and where a query node serves another state, the Spark job decides (docs/decisions/0069).
"""

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace

import duckdb

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.files import PRIVATE_FILE, write_atomically
from include.process import die_with_parent
from include.replay.explain.key_log import TableKeyLog, read_key_log
from include.replay.explain.served_state import ServedState, ServedStateLookup
from include.replay.fold_sql import NotTranslatedError
from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.lake_config import interpreter_variable, lake_job_command
from include.versions.explanation import Explanation, NotExplainedError, failure_json, key_argument
from include.versions.key_explanation import ExplainArguments, VersionsOfKey, explain_key

LOG = logging.getLogger("foldlake.explain")
# A node's image has no jobs.
JOB = CHECKOUT / "spark_jobs" / "explain.py"


class WithoutOptional:
    """Keeps PyArrow from importing pandas, and httpx from importing trio, which takes longer than to read a small log: neither is used."""

    def find_spec(self, name: str, *_: object) -> None:
        """Raise ModuleNotFoundError for these; leave other modules to the finders after this one."""
        if name in {"pandas", "trio"}:
            raise ModuleNotFoundError(name)


def main() -> None:
    """Run with the arguments of the Spark job (ExplainArguments), which replaces this process where Spark must explain."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    die_with_parent()
    sys.meta_path.insert(0, WithoutOptional())
    given = ExplainArguments.parse(__doc__)
    settings = Settings()
    try:
        found = _explained(settings, given).to_json()
    except (NotTranslatedError, duckdb.Error) as error:
        LOG.info("Spark explains the key: %s", error)
        found = failure_json(_become_spark_job(settings, given))
    except FoldlakeError as error:
        found = failure_json(error)
    write_atomically(given.result, found, PRIVATE_FILE)


def explanation(
    settings: Settings, model: ReadModel, key: str, versions: VersionsOfKey, limit: int, masked: Iterable[str]
) -> Explanation:
    """Return the explanation of a key: see `explain_key`.

    Raises NotTranslatedError or duckdb.Error where Spark must explain; KafkaUnavailableError, RegistryUnavailableError.
    """
    revisions = {*(version.fold_revision for version in versions.all), model.newest_fold_revision}

    def open_log(reading: ReadModel) -> TableKeyLog:
        return read_key_log(settings, reading, key, revisions)

    return explain_key(model, key, versions, open_log, limit, masked)


def _explained(settings: Settings, given: ExplainArguments) -> Explanation:
    model = read_model(given.read_model, settings.declaration_folders)
    versions = VersionsOfKey.of(settings.kafka_connection, model, given.version)
    # Before the log is read: its end is then behind the record's position.
    served = ServedStateLookup(settings, model, versions.shown, given.key).result()
    found = explanation(settings, model, given.key, versions, given.events, given.masked(model))
    difference = "" if served is None else served.difference(found)
    if served is None or not difference:
        return found
    LOG.warning("Spark explains the key as well, because %s", difference)
    return compared_with_spark(settings, given, found, served)


def compared_with_spark(
    settings: Settings, given: ExplainArguments, found: Explanation, served: ServedState
) -> Explanation:
    """Return the explanation of Spark, or of DuckDB where there is no Spark, with its difference from what is served.

    Raises NotExplainedError when the Spark job fails.
    """
    if JOB.exists():
        given.result.unlink(missing_ok=True)
        status = subprocess.run(
            _spark_job(settings, given), cwd=CHECKOUT, env=_environment(settings), check=False
        ).returncode
        if not given.result.exists():
            raise NotExplainedError(f"The Spark job that explains keys ended with status {status}.")
        found = Explanation.from_json(given.result.read_text(encoding="utf-8"))
    return replace(found, difference=served.difference(found))


def _become_spark_job(settings: Settings, given: ExplainArguments) -> FoldlakeError:
    """Replace this process by the Spark job; return the reason if there is no such job here."""
    if JOB.exists():
        command = _spark_job(settings, given)
        os.chdir(CHECKOUT)
        os.execve(command[0], command, _environment(settings))  # noqa: S606 - no shell
    command_line = f"./foldlake explain {shlex.quote(given.read_model)} {shlex.quote(given.key)}"
    return NotExplainedError(
        f"This key needs Spark, which this node's image lacks. Run `{command_line}` in the container of the stream supervisor."
    )


def _spark_job(settings: Settings, given: ExplainArguments) -> list[str]:
    version = () if given.version is None else (f"--version={given.version}",)
    arguments = [
        f"--read-model={given.read_model}",
        key_argument(given.key),
        *version,
        f"--events={given.events}",
        *(("--personal",) if given.personal else ()),
        f"--result={given.result}",
    ]
    return lake_job_command(settings, "explain", arguments)


def _environment(settings: Settings) -> dict[str, str]:
    # Somebody waits for it.
    settings = settings.changed(lake_niceness=0)
    return {**os.environ, **settings_environment(settings), **interpreter_variable()}


if __name__ == "__main__":
    main()
