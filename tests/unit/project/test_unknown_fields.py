"""What a newer release has written, with fields that this release does not know, is read: a rolling upgrade mixes both."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

from include.lake.tags import CommitTag
from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from include.versions.version_record import ReadModelVersions, first_version
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState
from query_api.store.base import Binding
from query_api.store.stored_form import dump_binding, load_binding
from stack.launchers import stream_driver

NEW: dict[str, Any] = {"added_later": {"a": [1]}}


def test_record_of_the_version_registry() -> None:
    record = first_version("sums", 1)
    fields = json.loads(record.to_json())
    fields["versions"][0] |= NEW

    assert ReadModelVersions.from_json(json.dumps(fields | NEW).encode()) == record


def test_partition_report_of_another_node() -> None:
    report = PartitionReport(
        read_model="sums",
        version=1,
        stage="live",
        partition=0,
        owner=None,
        standbys=(),
        reported_by="http://a",
        is_held=True,
        is_ready=True,
        changelog_topic="sums.v1.changelog",
    )

    assert PartitionReport.from_json(json.loads(json.dumps(report.as_json())) | NEW) == report


def test_tag_of_a_commit() -> None:
    tag = CommitTag("sums", 1, 1, "compaction", complete_up_to=Offsets({0: 5}))

    assert CommitTag.from_json(json.dumps(json.loads(tag.to_json()) | NEW)) == tag


def test_binding_of_a_store() -> None:
    binding = Binding("a cluster", "a topic", "an id")

    assert load_binding(json.dumps(json.loads(dump_binding(binding)) | NEW).encode()) == binding


def test_state_of_a_node(tmp_path: Path) -> None:
    state = NodeState("a", "http://a", models={"sums": ModelState("sums", "events", 4, 1, 1)})
    node_state.write(tmp_path, state)
    path = tmp_path / node_state.FILE_NAME
    fields = json.loads(path.read_bytes().split(b"\n")[1])
    fields["models"]["sums"] |= NEW
    text = json.dumps(fields | NEW).encode()
    path.write_bytes(b"%08x\n%s\n" % (crc32(text), text))

    assert node_state.read(tmp_path) == state


def test_state_of_the_stream_driver(tmp_path: Path) -> None:
    driver = stream_driver.Driver(pid=1, parent_pid=2, started_s=3.0, master="local[2]")
    path = stream_driver._state_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**vars(driver), **NEW}))

    assert stream_driver._read(tmp_path) == driver
