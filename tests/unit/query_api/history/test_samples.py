"""The history has a fixed size, forgets what is older than an hour, and survives as JSON."""

from pathlib import Path

from query_api.history.samples import (
    KEPT_S,
    MAX_MODELS,
    MAX_SAMPLES,
    History,
    HistorySample,
    read_columns,
    read_history,
    remove_history,
    write_history,
)


def sample(at: int) -> HistorySample:
    return HistorySample(at, 3, 1.5, 1.4, 12, None)


def test_the_newest_samples_of_a_fixed_number_are_kept() -> None:
    history = History()
    for at in range(MAX_SAMPLES + 5):
        history.add("balance", sample(at))

    assert history.as_json()["balance"]["at"] == list(range(5, MAX_SAMPLES + 5))


def test_the_number_of_read_models_has_a_limit() -> None:
    history = History()
    for number in range(MAX_MODELS + 1):
        history.add(f"model-{number}", sample(0))

    assert len(history.as_json()) == MAX_MODELS


def test_samples_of_more_than_an_hour_ago_leave_and_so_do_read_models_without_samples() -> None:
    history = History()
    history.add("gone", sample(0))
    history.add("balance", sample(10))
    history.add("balance", sample(20))

    history.expire(KEPT_S + 15)

    assert {name: columns["at"] for name, columns in history.as_json().items()} == {"balance": [20]}


def test_another_process_reads_what_was_written(tmp_path: Path) -> None:
    history = History()
    history.add("balance", sample(10))
    try:
        write_history(tmp_path, history)

        assert read_columns(tmp_path) == {
            "balance": {
                "at": [10],
                "events_behind": [3],
                "appended_per_s": [1.5],
                "folded_per_s": [1.4],
                "latency_ms": [12],
                "latency_max_ms": [None],
            }
        }
        assert read_history(tmp_path).as_json() == history.as_json()
    finally:
        remove_history(tmp_path)
    assert read_columns(tmp_path) == {}


def test_samples_of_another_release_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "samples.json").write_text('{"balance": {"at": [1], "lag": [2]}}')

    assert read_history(tmp_path).as_json() == {}
