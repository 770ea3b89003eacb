"""The tags of commits: stored JSON is stable, tags of older and newer releases are read, and other metadata is no tag."""

import json
from dataclasses import replace

import pytest

from include.lake.tags import AppendTag, CommitTag, Tag, read_lake_tag
from include.position import Offsets
from include.quality.verified_tag import TableDigest, VerifiedMark, VerifiedTag

COMMIT = CommitTag(
    "balance", 3, 2, "compaction", Offsets({0: 17, 1: 0}), Offsets({0: 40, 1: 2}), "5f0c", "i_Pm"
)
APPEND = AppendTag(
    "trend",
    "trend-records",
    "i_Pm",
    Offsets({0: 5, 1: 0}),
    Offsets({0: 17, 1: 9}),
    rows=18,
    unreadable=3,
    event_types=("TrendRecord",),
    generation=1,
)
VERIFIED = VerifiedTag(
    "balance",
    3,
    2,
    "f01d",
    "i_Pm",
    {"lake": VerifiedMark(Offsets({0: 40}), 12.5, {0: 9}, "daily", 10.0, 8)},
    TableDigest(9, 2**70),
    "run",
    "before",
    "chain",
)
# As releases have stored them.
STORED = (
    (
        COMMIT,
        (
            '{"read_model":"balance","version":3,"fold_revision":2,"operation":"compaction","changelog_offsets":{"0":17,"1":0},'
            '"complete_up_to":{"0":40,"1":2},"promotion_id":"5f0c","topic_id":"i_Pm"}'
        ),
    ),
    (
        APPEND,
        (
            '{"table":"trend","source_topic":"trend-records","topic_id":"i_Pm","start":{"0":5,"1":0},"offsets":{"0":17,"1":9},'
            '"operation":"append","rows":18,"unreadable":3,"other_types":0,"lost":0,"event_types":["TrendRecord"],"generation":1}'
        ),
    ),
    (
        VERIFIED,
        (
            '{"read_model":"balance","version":3,"fold_revision":2,"fold":"f01d","topic_id":"i_Pm","stores":{"lake":{"verified_up_to":{"0":40},'
            '"cut_at_s":12.5,"keys":{"0":9},"full_run_id":"daily","full_at_s":10.0,"table_version":8}},'
            '"digest":{"rows":9,"hashes":1180591620717411303424},"run_id":"run","previous":"before","chain":"chain"}'
        ),
    ),
)
TAGS = [tag for tag, _ in STORED]


@pytest.mark.parametrize(("tag", "text"), STORED)
def test_the_stored_json_of_a_tag_is_stable(tag: Tag, text: str) -> None:
    assert tag.to_json() == text
    assert type(tag).from_json(text) == tag


@pytest.mark.parametrize("tag", TAGS)
def test_fields_of_a_newer_release_are_ignored(tag: Tag) -> None:
    stored = json.loads(tag.to_json())
    for record in (stored, stored.get("digest"), stored.get("stores", {}).get("lake")):
        if record is not None:
            record["added_later"] = {"a": [1]}

    assert type(tag).from_json(json.dumps(stored)) == tag


@pytest.mark.parametrize(
    ("tag", "absent", "older"),
    [
        (COMMIT, {"topic_id"}, replace(COMMIT, topic_id="")),
        (APPEND, {"event_types", "generation"}, replace(APPEND, event_types=(), generation=0)),
        (VERIFIED, {"chain"}, replace(VERIFIED, chain="")),
    ],
)
def test_fields_that_an_older_release_did_not_write_have_their_defaults(
    tag: Tag, absent: set[str], older: Tag
) -> None:
    stored = {name: value for name, value in json.loads(tag.to_json()).items() if name not in absent}

    assert type(tag).from_json(json.dumps(stored)) == older


@pytest.mark.parametrize("kind", [CommitTag, AppendTag, VerifiedTag])
@pytest.mark.parametrize(
    "text",
    [
        *(None, "", "by hand", "{}", "[]", "null", "1", '{"version": 3}', '{"read_model": 1}'),
        '{"stores": {"lake": {}}}',
        '{"read_model": "a", "version": 1, "fold_revision": 1, "operation": "b", "changelog_offsets": 1, "complete_up_to": {}}',
    ],
)
def test_other_metadata_is_no_tag(kind: type[Tag], text: str | None) -> None:
    assert kind.from_json(text) is None


@pytest.mark.parametrize("kind", [CommitTag, AppendTag, VerifiedTag])
def test_a_tag_of_one_kind_of_table_is_none_of_another(kind: type[Tag]) -> None:
    assert [kind.from_json(tag.to_json()) for tag in TAGS if type(tag) is not kind] == [None, None]


@pytest.mark.parametrize(
    ("tag", "name"),
    [(COMMIT, "changelog_offsets"), (COMMIT, "complete_up_to"), (APPEND, "start"), (APPEND, "offsets")],
)
def test_without_offsets_metadata_is_no_tag(tag: Tag, name: str) -> None:
    stored = json.loads(tag.to_json())
    del stored[name]

    assert type(tag).from_json(json.dumps(stored)) is None


def test_a_tag_of_the_lake_is_that_of_a_read_model_or_of_an_event_table() -> None:
    assert [read_lake_tag(tag.to_json()) for tag in TAGS] == [COMMIT, APPEND, None]


def test_an_event_table_counts_the_records_from_its_start() -> None:
    assert APPEND.records == 21
