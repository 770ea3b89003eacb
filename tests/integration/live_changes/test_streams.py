"""Every node streams the changes of all partitions, to clients that want a key, a prefix, a box, or everything."""

from collections.abc import Callable

import httpx
import pytest

from tests.integration.live_changes.buoys import CHANGES, RECORDS, Buoys
from tests.integration.live_changes.event_stream import Event, EventStream, event_stream
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until


def facts(events: list[Event]) -> list[tuple[str, str, object]]:
    """Return of each event its name, its key and its event count."""
    return [(event.name, event.key, event.data["eventCount"]) for event in events]


def has(key: str, count: int) -> Callable[[EventStream], bool]:
    def condition(stream: EventStream) -> bool:
        return any(event.data["eventCount"] == count for event in stream.of_key(key))

    return condition


def test_any_node_streams_the_changes_of_all_partitions_in_the_order_of_each_key(
    nodes: NodeStack, buoys: Buoys
) -> None:
    names = [f"all-{number}" for number in range(20)]
    with (
        event_stream(nodes.ports[0], CHANGES) as first,
        event_stream(nodes.ports[1], f"{CHANGES}?prefix=all-") as second,
        event_stream(nodes.ports[0], f"{CHANGES}?key=all-7") as third,
    ):
        streams = (first, second, third)
        for stream in streams:
            stream.wait_until_live()
        for count in range(1, 6):
            for name in names:
                buoys.put(name, count, count, label=f"é {count}")
        buoys.put("other", 1, 1)
        buoys.remove("all-7")
        buoys.flush()
        for stream in (first, second, third):
            stream.wait_for(lambda s: bool(s.named("removed")), "the removal is sent")
        first.wait_for(lambda s: len(s.named("changed")) >= 101, "all changes are sent")
        second.wait_for(lambda s: len(s.named("changed")) >= 100, "all changes are sent")

        expected = [("changed", "all-7", count) for count in range(1, 6)] + [("removed", "all-7", 5)]
        for stream in streams:
            assert facts(stream.of_key("all-7")) == expected
        for name in set(names) - {"all-7"}:
            assert facts(second.of_key(name)) == [("changed", name, count) for count in range(1, 6)]
        assert len(third.named("changed")) == 5
        assert not second.of_key("other")
        newest = first.of_key("all-3")[-1].data
        assert newest["state"] == {"lat": 5.0, "lon": 5.0, "label": "é 5"}
        record = nodes.get(nodes.ports[0], f"{RECORDS}/all-3?version=1").json()
        wait_until(lambda: nodes.get(nodes.ports[0], f"{RECORDS}/all-3").json()["eventCount"] == 5, "stored")
        assert newest == {k: v for k, v in record.items() if k not in {"readModel", "version"}}
    for name in list(buoys.present):
        buoys.remove(name)
    buoys.flush()


def test_a_box_is_told_what_enters_moves_and_leaves_it(nodes: NodeStack, buoys: Buoys) -> None:
    with event_stream(nodes.ports[1], f"{CHANGES}?within=10,20,11,21") as stream:
        stream.wait_until_live()
        buoys.put("in-and-out", 10.5, 20.5)
        buoys.put("outside", 50, 50)
        buoys.put("in-and-out", 10.6, 20.5)
        buoys.put("outside", 51, 51)
        buoys.put("in-and-out", 12, 20.5)
        buoys.put("in-and-out", 13, 20.5)
        buoys.put("in-and-out", 11, 21)
        buoys.remove("in-and-out")
        buoys.put("removed-outside", 60, 60)
        buoys.put("removed-outside", 61, 60)
        buoys.remove("removed-outside")
        # A change after all others in each partition, at the corner of the box.
        last = buoys.one_in_each_partition("last")
        for name in last:
            buoys.put(name, 10, 20)
        buoys.flush()
        stream.wait_for(lambda s: all(s.of_key(name) for name in last), "the last ones are sent")

        assert facts(stream.of_key("in-and-out")) == [
            ("changed", "in-and-out", 1),
            ("changed", "in-and-out", 2),
            ("left", "in-and-out", 3),
            ("changed", "in-and-out", 5),
            ("removed", "in-and-out", 5),
        ]
        # Where it was before its first change is not known.
        assert facts(stream.of_key("outside")) == [("left", "outside", 1)]
        assert facts(stream.of_key("removed-outside")) == [("left", "removed-outside", 1)]
    for name in list(buoys.present):
        buoys.remove(name)
    buoys.flush()


def test_a_stream_continues_after_the_last_event_on_another_node(nodes: NodeStack, buoys: Buoys) -> None:
    with event_stream(nodes.ports[0], f"{CHANGES}?prefix=resumed") as before:
        before.wait_until_live()
        for number in range(10):
            buoys.put(f"resumed-{number % 3}", number, number)
        buoys.flush()
        before.wait_for(lambda s: len(s.named("changed")) == 10, "the first changes are sent")
    for number in range(10, 1500):
        buoys.put(f"resumed-{number % 3}", number % 90, number % 90)
    buoys.remove("resumed-0")
    buoys.flush()

    position = before.named("changed")[4].event_id
    with event_stream(nodes.ports[1], f"{CHANGES}?prefix=resumed", position) as after:
        buoys.put("resumed-1", 1, 1)
        buoys.flush()
        after.wait_for(lambda s: bool(s.named("removed")), "the removal is sent")
        for key in ("resumed-1", "resumed-2"):
            after.wait_for(has(key, buoys.counts[key]), "the newest change is sent")

    for key in ("resumed-0", "resumed-1", "resumed-2"):
        sent = [facts(stream.of_key(key)) for stream in (before, after)]
        known = [event for event in before.named("changed")[:5] if event.key == key]
        assert facts(known) + sent[1] == [
            ("changed", key, count + 1) for count in range(buoys.counts[key])
        ] + ([("removed", key, buoys.counts[key])] if key == "resumed-0" else [])
    with event_stream(nodes.ports[0], f"{CHANGES}?prefix=resumed&after={after.last_id}") as again:
        again.wait_until_live()
        assert not again.named("changed", "removed")


def test_a_snapshot_and_the_changes_after_it_have_no_gap(nodes: NodeStack, buoys: Buoys) -> None:
    for number in range(700):
        buoys.put(f"snap-{number}", number % 90, 1)
    buoys.flush()
    with event_stream(nodes.ports[0], f"{CHANGES}?prefix=snap-&snapshot=true&within=-90,0,90,2") as stream:
        for number in range(700):
            if number % 7 == 0:
                buoys.remove(f"snap-{number}")
            else:
                buoys.put(f"snap-{number}", number % 90, 1 if number % 2 else 3)
        buoys.flush()
        expected = {
            name: point for name, point in buoys.present.items() if point[1] == 1 and name[:4] == "snap"
        }
        seen: dict[str, tuple[float, float]] = {}

        def is_complete(_: EventStream) -> bool:
            seen.clear()
            counts: dict[str, int] = {}
            for event in stream.named("present", "changed", "left", "removed"):
                assert event.data["eventCount"] >= counts.get(event.key, 0), "never backwards"
                counts[event.key] = event.data["eventCount"]
                seen.pop(event.key, None)
                if event.name in {"present", "changed"}:
                    seen[event.key] = (event.data["state"]["lat"], event.data["state"]["lon"])
            return seen == expected

        stream.wait_until_live()
        stream.wait_for(is_complete, "the client knows exactly the buoys in the box")
        assert stream.events[0].name == "snapshot"
        assert not stream.events[0].event_id, "a client that is interrupted begins again"

    with event_stream(nodes.ports[1], f"{CHANGES}?key=snap-1&snapshot=true") as one:
        one.wait_until_live()
        assert facts(one.named("present", "changed")) == [("present", "snap-1", 2)]


def test_records_that_a_driver_repeats_after_a_crash_are_not_sent_again(
    nodes: NodeStack, buoys: Buoys
) -> None:
    with event_stream(nodes.ports[0], f"{CHANGES}?prefix=crash") as stream:
        stream.wait_until_live()
        buoys.put("crash", 1, 1)
        buoys.put("crash", 2, 2)
        buoys.put("crash", 3, 3)
        buoys.repeat("crash", 1, 1, 1)
        buoys.repeat("crash", 2, 2, 2)
        buoys.put("crash", 4, 4)
        buoys.remove("crash")
        buoys.repeat("crash", 3, 3, 3)
        buoys.repeat("crash", 4, 4, 4)
        buoys.put("crash", 5, 5)
        buoys.flush()
        stream.wait_for(has("crash", 5), "the last one is sent")

    assert facts(stream.of_key("crash")) == [
        *[("changed", "crash", count) for count in range(1, 5)],
        ("removed", "crash", 4),
        ("changed", "crash", 5),
    ]


@pytest.mark.parametrize(
    ("query", "status", "slug"),
    [
        ("key=a&prefix=b", 400, "key-and-prefix"),
        ("key=", 400, "invalid-key"),
        ("within=1,2,3", 400, "invalid-within"),
        ("snapshot=yes", 400, "invalid-snapshot"),
        ("after=x", 400, "invalid-position"),
        ("after=1.1.0-0-0-0", 410, "position-gone"),
        ("after=2.9999999999.0-0-0-0", 410, "position-gone"),
        ("after=1.9999999999.0-0", 410, "position-gone"),
        ("after=1.9999999999.0-0-0-99999999", 410, "position-gone"),
        ("version=9", 404, "unknown-model"),
    ],
)
def test_a_refused_stream_gives_the_reason(nodes: NodeStack, query: str, status: int, slug: str) -> None:
    answer = nodes.get(nodes.ports[0], f"{CHANGES}?{query}")

    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:foldlake:problem:{slug}")


def test_a_read_model_without_a_location_takes_no_box(nodes: NodeStack) -> None:
    answer: httpx.Response = nodes.get(nodes.ports[0], f"{RECORDS}?within=0,0,1")
    assert answer.json()["type"] == "urn:foldlake:problem:invalid-within"
    answer = nodes.get(nodes.ports[0], "/api/read-models/balance/records?within=0,0,1,1")
    assert answer.json()["type"] == "urn:foldlake:problem:no-location"


def test_a_listing_has_the_items_in_a_box(nodes: NodeStack, buoys: Buoys) -> None:
    for number in range(60):
        buoys.put(f"listed-{number}", number, 170 + number / 5)
        if number >= 50:
            buoys.put(f"listed-{number}", number, -(170 + number / 10))
    buoys.flush()
    wait_until(lambda: buoys.are_listed(nodes), "all nodes list them")
    keys = []
    cursor: str | None = ""
    while cursor is not None:
        page = nodes.get(
            nodes.ports[0], f"{RECORDS}?limit=4&within=10,175,55,-175&prefix=listed-{cursor}"
        ).json()
        keys += [record["key"] for record in page["records"]]
        cursor = None if page["next"] is None else f"&cursor={page['next']}"

    assert sorted(keys) == sorted(f"listed-{number}" for number in range(25, 56))
    owned = [
        record["key"]
        for partition in range(nodes.settings.topics.partitions)
        for record in nodes.get(
            nodes.ports[1], f"{RECORDS}?partition={partition}&within=10,175,55,-175&limit=1000"
        ).json()["records"]
    ]
    assert sorted(key for key in owned if key.startswith("listed")) == sorted(keys)
