"""A new kind of declaration is one file: its slots, status, metrics and templates follow, and errors name what is wrong."""

import shutil
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from cli.app import app
from include.declarations.latency_override import stream_catalog
from include.declarations.load import load_catalog
from include.errors import ReadModelError
from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from include.status.flow_status import FlowStatus, StreamStatus
from include.status.flows import flows
from include.stream.slot_planning import query_slots
from query_api.metrics.status_metrics import stream_exposition
from tests.support.declarations.refusal import refusal

KIND = Path(__file__).parents[2] / "support" / "read_models_with_kind"
STATELESS = """
from dataclasses import dataclass
from typing import ClassVar

from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.flow import Flow
from include.declarations.kinds.kind import FlowDeclaration


@dataclass(frozen=True)
class Copy(FlowDeclaration):
    kind: ClassVar[str] = "copy"
    name: str
    source_topic: str = "balance"

    def flows(self):
        return [Flow("copy", self.name, self.source_topic, ("FundsAdded",), f"{self.name}-topic")]


KINDS = [Copy]
"""
USE = "from include.read_models.copying import Copy\n\nDECLARATIONS = [Copy('copies'%s)]\n"


def settings(folder: Path, **values: object) -> Settings:
    return Settings.of(partitions=4, read_models_dir=folder, **values)


def declare(folder: Path, use: str = "", *, kind: str = STATELESS) -> None:
    (folder / "copying.py").write_text(kind, encoding="utf-8")
    # Before the kind by name, and imported before it.
    (folder / "a_copy.py").write_text(USE % use, encoding="utf-8")


def test_one_file_has_the_kind_and_declarations_of_it() -> None:
    catalog = load_catalog((KIND,))

    assert catalog.failures == ()
    (flow,) = catalog.flows
    assert (str(flow), flow.query_name, flow.output_topic) == (
        "distinct first-deposits",
        "distinct/first-deposits",
        "first-deposits",
    )
    assert catalog.kinds.keys() == {"distinct"}


def test_a_module_imports_the_kind_of_another_one(tmp_path: Path) -> None:
    declare(tmp_path)

    catalog = load_catalog((tmp_path,))

    assert catalog.failures == ()
    assert [flow.query_name for flow in catalog.flows] == ["copy/copies"]
    assert load_catalog((tmp_path,), reload=True).failures == ()


def test_a_later_version_of_a_flow_writes_to_a_topic_of_its_own(tmp_path: Path) -> None:
    declare(tmp_path, kind=STATELESS.replace('-topic")', '-topic", version=2)'))

    (flow,) = load_catalog((tmp_path,)).flows

    assert (flow.output_topic, flow.declared_topic) == ("copies-topic.v2", "copies-topic")
    assert flow.query_name == "copy/copies.v2"


def test_each_folder_has_its_own_module_of_a_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        declare(folder, kind=STATELESS.replace('f"{self.name}-topic"', f'"{name}"'))
        assert [flow.output_topic for flow in load_catalog((folder,)).flows] == [name]
    assert sys.modules["include.read_models.copying"].__file__ == str(tmp_path / "two" / "copying.py")


@pytest.mark.parametrize(
    ("kind", "use", "error"),
    [
        (STATELESS.replace('"copy"', '"route"'), "", "`kind` of Copy is 'route', which is reserved"),
        (
            STATELESS.replace('[str] = "copy"', '[str] = "A copy"'),
            "",
            "`kind` of Copy is 'A copy': give a word",
        ),
        (STATELESS.replace("[Copy]", "['Copy']"), "", "KINDS has 'Copy', which is no kind"),
        (STATELESS.replace("def flows", "def others"), "", "Copy has no flows: a kind compiles to flows"),
        (
            STATELESS.replace('Flow("copy"', 'Flow("other"'),
            "",
            "compiles to a flow of kind 'other': use 'copy'",
        ),
        (STATELESS.replace("return [", "return [][:0] and ["), "", "Copy copies compiles to no flow"),
        (STATELESS, ", 'copies-topic'", "its own output leads back: its events would circulate for ever"),
        (STATELESS, "), Copy('copies'", "Two flows are named 'copies'"),
        (
            STATELESS.replace('f"{self.name}-topic"', '"one"'),
            "), Copy('others'",
            "Copy others and copies write to one",
        ),
        (STATELESS.replace('"FundsAdded"', '"Nothing"'), "", "There is no schema of event type Nothing"),
        (STATELESS.replace('("FundsAdded",)', "()"), "", "Copy copies reads no event types"),
        (
            STATELESS.replace('-topic")', '-topic", source_format=EventFormat.JSON)'),
            "",
            "Copy copies reads JSON, and what it writes is Avro",
        ),
        (
            STATELESS.replace('-topic")', '-topic", output_type="FundsAdded", fields=dict, key=str)'),
            "",
            "Copy copies has a `key`, but the key of FundsAdded is the field",
        ),
        (
            STATELESS.replace('-topic")', '-topic", state=dict, key=str)'),
            "",
            "has a state: it writes at most one output",
        ),
        (STATELESS.replace('"copy"', '"balance"'), "", "A read model is named 'balance', and so is a kind"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, kind: str, use: str, error: str) -> None:
    declare(tmp_path, use, kind=kind)

    failures = ""
    try:
        failures = "; ".join(failure.error for failure in load_catalog((tmp_path,)).failures)
    except ReadModelError as found:
        failures = str(found)
    assert error in failures


def test_two_kinds_with_one_word_are_refused(tmp_path: Path) -> None:
    declare(tmp_path)
    (tmp_path / "second.py").write_text(STATELESS)

    assert refusal(tmp_path) == "Two kinds of declaration are named 'copy': rename one."


def test_a_flow_with_a_state_has_the_slots_of_a_shuffle(tmp_path: Path) -> None:
    without = stream_task_slots(Settings.of(partitions=4))

    found = settings(KIND)
    assert stream_task_slots(found) == without + query_slots(found.stream, 4)
    declare(tmp_path)
    assert stream_task_slots(settings(tmp_path)) == without + 4


def test_an_operator_lets_a_flow_run_in_batches_unless_it_has_a_state(tmp_path: Path) -> None:
    declare(tmp_path)

    (flow,) = stream_catalog(settings(tmp_path, stream_batch_mode=("copies",))).flows

    assert flow.is_in_batches
    with pytest.raises(
        ReadModelError, match="distinct first-deposits, which has a state: it is always in real time"
    ):
        stream_catalog(settings(KIND, stream_batch_mode=("first-deposits",)))


def test_status_and_metrics_have_a_flow_of_a_new_kind() -> None:
    found = settings(KIND)
    (flow,) = (one for one in flows(found, stream_catalog(found), {}) if one.declared.kind == "distinct")
    status: FlowStatus = flow.declared
    assert (status.name, status.belongs_to, status.source_topic, status.output_topic) == (
        "first-deposits",
        "first-deposits",
        "balance",
        "first-deposits",
    )
    assert flow.progress is not None

    text = stream_exposition(StreamStatus((status,))).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert not [one for one in samples if one.name == "foldlake_stream_output_events_behind"], "not measured"
    measured = stream_exposition(StreamStatus((FlowStatus(**{**vars(status), "events_behind": 3}),))).decode()
    assert (
        'foldlake_stream_output_events_behind{kind="distinct",name="first-deposits",stage="live",version=""} 3.0'
        in measured
    )


def test_new_writes_a_declaration_from_the_template_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(KIND / "distinct.py", tmp_path)
    monkeypatch.setenv("FOLDLAKE_READ_MODELS_DIR", str(tmp_path))

    made = CliRunner().invoke(app, ["new", "distinct", "known-customers"])

    assert made.exit_code == 0, made.output
    catalog = load_catalog((tmp_path,))
    assert catalog.failures == ()
    assert {flow.query_name for flow in catalog.flows} == {
        "distinct/first-deposits",
        "distinct/known-customers",
    }
    test = (tmp_path / "tests" / "test_known_customers.py").read_text()
    compile(test, "test_known_customers.py", "exec")
    assert "Decimal(" in test
    assert "from decimal import Decimal" in test
    assert "kind `distinct`" in (tmp_path / "docs" / "known-customers.md").read_text()


def test_new_names_the_known_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(KIND / "distinct.py", tmp_path)
    monkeypatch.setenv("FOLDLAKE_READ_MODELS_DIR", str(tmp_path))

    made = CliRunner().invoke(app, ["new", "distinkt", "known-customers"])

    assert made.exit_code != 0
    assert "Known kinds: read-model, route, emission, distinct." in str(made.exception or made.output)
