"""A record's time counts as the time of its append only if the record was not on the topic long after it."""

from query_api.history.latencies import CLOCK_TOLERANCE_S, REMEMBERED_ENDS, TopicEnds


def observed(*ends: tuple[int, float]) -> TopicEnds:
    known = TopicEnds()
    for end, at_s in ends:
        known.observe("balance", {0: end}, at_s)
    return known


def test_a_record_was_absent_when_the_topic_ended_at_or_before_its_offset() -> None:
    known = observed((10, 100.0), (12, 101.0), (15, 102.0))

    assert known.absent_at_s(("balance", 0, 11)) == 100.0
    assert known.absent_at_s(("balance", 0, 12)) == 101.0
    assert known.absent_at_s(("balance", 0, 99)) == 102.0
    assert known.absent_at_s(("balance", 0, 9)) is None
    assert known.absent_at_s(("balance", 1, 11)) is None


def test_a_time_that_a_loader_has_invented_is_not_plausible() -> None:
    known = observed((10, 1000.0))
    location = ("balance", 0, 10)

    assert known.is_plausible(location, 1000.5)
    assert known.is_plausible(location, 1000.0 - CLOCK_TOLERANCE_S / 2)
    assert not known.is_plausible(location, 5.0)
    # Appended before the first observation: nothing speaks against its time.
    assert known.is_plausible(("balance", 0, 3), 5.0)


def test_only_so_many_observations_are_remembered() -> None:
    known = observed(*((end, float(end)) for end in range(REMEMBERED_ENDS + 10)))

    assert known.absent_at_s(("balance", 0, 9)) is None
    assert known.absent_at_s(("balance", 0, 10)) == 10.0
