"""A member's assignment, parsed from the bytes of Kafka's consumer protocol."""

from include.nodes.routing_table import parse_assignment


def test_assignment_of_several_topics_is_parsed() -> None:
    assignment = (
        b"\x00\x00\x00\x00\x00\x02"
        b"\x00\x07balance\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x03"
        b"\x00\x05other\x00\x00\x00\x01\x00\x00\x00\x00"
        b"\x00\x00\x00\x02xx"
    )

    assert parse_assignment(assignment) == [("balance", 2), ("balance", 3), ("other", 0)]


def test_member_without_an_assignment_has_no_partitions() -> None:
    assert parse_assignment(b"") == []
