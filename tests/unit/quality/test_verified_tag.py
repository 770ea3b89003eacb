"""The tag of verified records notices a changed digest or offset, and gives the offsets of all stores."""

from dataclasses import replace

import pytest

from include.position import Offsets
from include.quality.verified_tag import TableDigest, VerifiedMark, VerifiedTag, verified_by_all

LAKE = VerifiedMark(Offsets({0: 10, 1: 7}), 100.0, {0: 2, 1: 1}, "daily", 50.0, 12)
NODES = VerifiedMark(Offsets({0: 8, 1: 9}), 101.5, {0: 2, 1: 2}, "daily", 50.0)
TAG = VerifiedTag(
    read_model="balance",
    version=1,
    fold_revision=1,
    fold="f00",
    topic_id="topic",
    stores={"lake": LAKE, "nodes": NODES},
    digest=TableDigest(3, -(10**30)),
    run_id="run",
    previous="before",
).chained()


def test_an_unchanged_tag_is_chained() -> None:
    assert TAG.is_chained


@pytest.mark.parametrize(
    "changed",
    [
        replace(TAG, digest=TableDigest(3, 1)),
        replace(TAG, digest=TableDigest(4, -(10**30))),
        replace(TAG, previous="another"),
        replace(TAG, stores={"lake": LAKE}),
        replace(TAG, stores={"lake": replace(LAKE, verified_up_to=Offsets({0: 11, 1: 7})), "nodes": NODES}),
    ],
)
def test_a_changed_tag_is_not_chained(changed: VerifiedTag) -> None:
    assert not changed.is_chained


def test_all_stores_are_verified_up_to_the_lowest_offsets() -> None:
    assert verified_by_all([LAKE, NODES]) == {0: 8, 1: 7}
    assert verified_by_all([LAKE]) == LAKE.verified_up_to


def test_digests_add_up() -> None:
    assert TableDigest(1, 5) + TableDigest(2, -7) == TableDigest(3, -2)


def test_ages_are_never_negative() -> None:
    assert (LAKE.age_s(130.0), LAKE.full_age_s(130.0)) == (30.0, 80.0)
    assert (LAKE.age_s(0.0), LAKE.full_age_s(0.0)) == (0.0, 0.0)
