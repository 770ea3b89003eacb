"""When another version becomes the live one, streams of the live version end and say so; runs after all other tests of the folder."""

from dataclasses import replace

from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, Version
from tests.integration.live_changes.buoys import CHANGES, MODEL, Buoys
from tests.integration.live_changes.event_stream import event_stream
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until


def promote(nodes: NodeStack, candidate: Buoys) -> None:
    """Register a version, and make it the live one once all nodes have loaded it."""
    registry = VersionRegistry(nodes.settings.kafka_connection)
    record = registry.read()[MODEL]
    number = candidate.version
    added = Version(number, Stage.CANDIDATE, 1, candidate.writer.topic, "test", "now")
    registry.compare_and_set(replace(record, versions=(*record.versions, added)), record.revision)

    def is_loaded() -> bool:
        reports = [
            report
            for port in nodes.ports
            for report in nodes.get(port, "/api/partitions").json()
            if (report["readModel"], report["version"]) == (MODEL, number)
        ]
        return bool(reports) and all(report["isReady"] and report["lagRecords"] == 0 for report in reports)

    wait_until(is_loaded, "the candidate is loaded")
    stages = {number: Stage.LIVE, number - 1: Stage.PREVIOUS}
    record = registry.read()[MODEL]
    versions = tuple(replace(v, stage=stages.get(v.number, v.stage)) for v in record.versions)
    registry.compare_and_set(replace(record, versions=versions), record.revision)


def test_a_promotion_resets_streams_of_the_live_version_only(nodes: NodeStack, buoys: Buoys) -> None:
    candidate = Buoys(nodes.settings, version=buoys.version + 1)
    candidate.put("new", 7, 7)
    candidate.flush()
    with (
        event_stream(nodes.ports[0], f"{CHANGES}?snapshot=true") as live,
        event_stream(nodes.ports[1], f"{CHANGES}?version={buoys.version}") as fixed,
    ):
        live.wait_until_live()
        fixed.wait_until_live()
        position = live.last_id
        assert position
        promote(nodes, candidate)
        live.wait_for(lambda s: s.has_ended, "the stream has ended")
        assert live.events[-1].name == "reset"
        assert live.events[-1].data["reason"] == "promoted"
        assert live.last_id == "", "a browser that connects again begins again"

        buoys.put("old", 1, 1)
        buoys.flush()
        fixed.wait_for(lambda s: bool(s.of_key("old")), "the stream of the previous version goes on")

    gone = nodes.get(nodes.ports[0], f"{CHANGES}?after={position}")
    assert (gone.status_code, gone.json()["type"]) == (410, "urn:foldlake:problem:position-gone")
    with event_stream(nodes.ports[0], f"{CHANGES}?snapshot=true", position) as again:
        again.wait_until_live()
        assert [(e.name, e.data["version"]) for e in again.named("snapshot", "live")] == [
            ("snapshot", candidate.version),
            ("live", candidate.version),
        ]
        assert [event.key for event in again.named("present")] == ["new"]
