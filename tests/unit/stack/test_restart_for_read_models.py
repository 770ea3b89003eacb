"""A changed read-model module or event schema restarts only the processes that read it."""

from pathlib import Path

import pytest

from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from stack.components import airflow
from stack.lifecycle import all_processes
from stack.supervision.configuration import declarations_digest
from stack.supervision.process import Process
from tests.support.balance_copy import with_balance_copy
from tests.support.written_descriptions import written_descriptions


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "read_models").mkdir()
    return Settings.of(home=tmp_path / "home", read_models_dir=tmp_path / "read_models")


def module(settings: Settings) -> Path:
    assert settings.read_models_dir is not None
    return settings.read_models_dir / "another.py"


def test_the_digest_changes_with_names_and_contents(settings: Settings) -> None:
    empty = declarations_digest(settings.declaration_folders)
    module(settings).write_text("READ_MODEL = 1")
    one = declarations_digest(settings.declaration_folders)
    module(settings).write_text("READ_MODEL = 2")
    other = declarations_digest(settings.declaration_folders)
    module(settings).rename(module(settings).with_name("renamed.py"))
    renamed = declarations_digest(settings.declaration_folders)
    module(settings).with_name("renamed.py").unlink()

    package = module(settings).with_name("package") / "schemas"
    package.mkdir(parents=True)
    (package / "Ordered.avsc").write_text("{}")
    with_schema = declarations_digest(settings.declaration_folders)
    (package / "Ordered.avsc").unlink()
    (package.parent / "api.py").write_text("LOOKUPS = ()")
    with_api = declarations_digest(settings.declaration_folders)
    (package.parent / "api.py").unlink()

    assert len({empty, one, other, renamed, with_schema, with_api}) == 6
    assert declarations_digest(settings.declaration_folders) == empty


def test_the_query_nodes_read_them(settings: Settings) -> None:
    assert {process.name for process in all_processes(settings) if process.reads_declarations} == {
        "node-1-http",
        "node-1-materializer",
        "node-2-http",
        "node-2-materializer",
    }


def test_a_further_read_model_does_not_change_airflow(settings: Settings) -> None:
    folder = module(settings).parent
    slots, before = stream_task_slots(settings), airflow.processes(settings)

    with_balance_copy(settings, "further", folder)

    assert stream_task_slots(settings) > slots
    assert [(one.name, one.command, one.environment) for one in airflow.processes(settings)] == [
        (one.name, one.command, one.environment) for one in before
    ]


def airflow_descriptions(settings: Settings) -> dict[str, Path]:
    return written_descriptions(settings, airflow.processes(settings))


def test_settings_of_tasks_do_not_change_airflow(settings: Settings) -> None:
    before = airflow_descriptions(settings)

    changed = settings.changed(
        stream_pace="throughput", quality_sample_keys=5, compaction_interval_s=7.0, partitions=3
    )

    assert airflow_descriptions(changed) == before


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("airflow_parallelism", 3),
        ("stream_master", "spark://other:7077"),
        ("reports_url", "http://other.example"),
        # A secret, which no file but one contains.
        ("alert_webhook_url", "http://chat.example/hook"),
    ],
)
def test_its_own_settings_change_all_of_airflow(settings: Settings, variable: str, value: object) -> None:
    before = airflow_descriptions(settings)

    after = airflow_descriptions(settings.changed(**{variable: value}))

    assert before.keys() == after.keys()
    assert not set(before.values()) & set(after.values())


def test_a_change_alters_only_the_definitions_of_processes_that_read_them(settings: Settings) -> None:
    def definitions() -> dict[str, Path]:
        processes = [
            Process(name, ("/bin/true",), 1, bool, reads_declarations=name == "reader")
            for name in ("reader", "other")
        ]
        return written_descriptions(settings, processes)

    before = definitions()
    module(settings).write_text("READ_MODEL = 1")
    after = definitions()

    assert after["reader"] != before["reader"]
    assert after["other"] == before["other"]
    # supervisord restarts the process with it until it is replaced.
    assert before["reader"].exists()


def test_no_setting_and_no_declaration_changes_the_stream_supervisor(settings: Settings) -> None:
    def definition(changed: Settings) -> Path:
        return written_descriptions(changed, all_processes(changed))["stream-supervisor"]

    before = definition(settings)
    module(settings).write_text("DECLARATIONS = []")

    assert definition(settings.changed(stream_pace="throughput", kafka_port=1)) == before
