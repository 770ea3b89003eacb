"""A source topic has the options that its read models set, and otherwise those of the settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from include.declarations.load import load_catalog
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from include.spark.stream_config import source_partitions, stream_config, stream_master

SETTINGS = Settings.of(partitions=4, replication_factor=3)
MODULE = """
from dataclasses import replace
from include.declarations.topic_options import TopicOptions
from include.read_models.balance.model import READ_MODEL as BALANCE
READ_MODEL = replace(BALANCE, name={name!r}, source_topic={topic!r}, topic=TopicOptions({options}))
"""


def declare(folder: Path, name: str, topic: str, options: str) -> None:
    (folder / f"{name}.py").write_text(MODULE.format(name=name, topic=topic, options=options))


def test_without_options_the_settings_apply_and_events_are_kept_for_ever() -> None:
    topics = READ_MODEL.source_topics(SETTINGS.topics)

    assert [topic.name for topic in topics] == ["balance", "balance.dead-letter"]
    assert {(topic.partitions, topic.replication_factor) for topic in topics} == {(4, None)}
    assert {topic.config["retention.ms"] for topic in topics} == {"-1"}


def test_options_apply_to_the_topic_its_dead_letters_and_its_changelogs() -> None:
    model = replace(READ_MODEL, topic=TopicOptions(partitions=12, replication_factor=2, retention_ms=1000))
    topics = model.source_topics(SETTINGS.topics)
    changelog = model.changelog("balance.v1.changelog", SETTINGS.topics)

    assert {(topic.partitions, topic.replication_factor) for topic in (*topics, changelog)} == {(12, 2)}
    assert {topic.config["retention.ms"] for topic in topics} == {"1000"}
    assert "retention.ms" not in changelog.config


def test_source_topics_are_synced_as_the_setting_says() -> None:
    topics = READ_MODEL.source_topics(Settings.of(flush_messages=1).topics)

    assert {topic.config["flush.messages"] for topic in topics} == {"1"}
    assert all("flush.messages" not in topic.config for topic in READ_MODEL.source_topics(SETTINGS.topics))


def test_options_of_a_shared_topic_are_set_only_once(tmp_path: Path) -> None:
    declare(tmp_path, "one", "shared", "partitions=6")
    declare(tmp_path, "two", "shared", "retention_ms=5")

    models = load_catalog((tmp_path,)).models

    assert models["one"].topic == models["two"].topic == TopicOptions(partitions=6, retention_ms=5)
    assert models["balance"].topic == TopicOptions()


def test_conflicting_options_are_rejected(tmp_path: Path) -> None:
    declare(tmp_path, "one", "shared", "partitions=6")
    declare(tmp_path, "two", "shared", "partitions=7")
    with pytest.raises(ReadModelError, match="partitions of the topic shared to 6 and 7"):
        load_catalog((tmp_path,))


@pytest.mark.parametrize("options", [{"partitions": 0}, {"retention_ms": -1}])
def test_option_below_one_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ReadModelError, match="give 1 or more"):
        TopicOptions(**options)


def test_slots_and_cores_follow_each_read_model_s_partitions(tmp_path: Path) -> None:
    declare(tmp_path, "wide", "wide", "partitions=12")
    settings = SETTINGS.changed(home=tmp_path / "home", read_models_dir=tmp_path, stream_spare_queries=1)

    assert sorted(source_partitions(settings.topics, settings.declaration_folders)) == [4, 12]
    # A live query each (8 and 24), a spare one of the larger (24), dead letters (4 and 12).
    assert stream_master(settings) == "local[72]"
    assert stream_config(settings)["spark.cores.max"] == "72"
    cluster = settings.changed(stream_master="spark://host:7077")
    assert stream_config(cluster)["spark.sql.shuffle.partitions"] == "12"


def declare_route(folder: Path, source: str) -> None:
    (folder / "changes.py").write_text(
        "from include.declarations.kinds.route import Route\n"
        "from include.declarations.topic_options import TopicOptions\n"
        f"ROUTE = Route(name='changes', source_topic={source!r}, source=TopicOptions(compacted=True),"
        " event_types=('FundsAdded',), output_topic='changes')\n"
    )


def test_a_route_declares_its_source_as_compacted_and_writes_to_a_topic_that_is_kept(tmp_path: Path) -> None:
    declare_route(tmp_path, "accounts")
    topics = {t.name: t.config for t in load_catalog((tmp_path,)).routes["changes"].topics(SETTINGS.topics)}

    assert topics["accounts"]["cleanup.policy"] == "compact"
    assert topics["accounts.dead-letter"]["cleanup.policy"] == "delete"
    assert (topics["changes"]["cleanup.policy"], topics["changes"]["retention.ms"]) == ("delete", "-1")


def test_a_read_model_does_not_fold_a_compacted_topic(tmp_path: Path) -> None:
    declare(tmp_path, "one", "accounts", "compacted=True")

    with pytest.raises(ReadModelError, match="one reads accounts, which is compacted"):
        load_catalog((tmp_path,))
