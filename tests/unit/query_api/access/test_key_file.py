"""The file with the keys of a node: private, replaced as a whole, and read again after each change."""

import time
from pathlib import Path

from include.access.api_key import ApiKey, create_key, revoked
from include.access.caller import Scope
from query_api.access.key_file import FILE_NAME, read_key_file, watch_keys, write_key_file
from tests.support.waiting import wait_until


def new_key(name: str) -> ApiKey:
    key, _ = create_key(name, frozenset({Scope.READ}))
    return key


def test_a_change_is_seen_soon(tmp_path: Path) -> None:
    one, two = new_key("one"), new_key("two")
    watch = watch_keys(tmp_path)
    assert watch.current() is None

    write_key_file(tmp_path, [one])
    wait_until(lambda: watch.current() == {one.id: one}, "the first key is known")
    ended = revoked(one, two.created_at)
    write_key_file(tmp_path, [ended, two])
    wait_until(lambda: watch.current() == {one.id: ended, two.id: two}, "the change is known")
    write_key_file(tmp_path, [])

    wait_until(lambda: watch.current() == {}, "the keys are gone")


def test_the_file_is_private(tmp_path: Path) -> None:
    write_key_file(tmp_path, [new_key("one")])

    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_half_written_or_missing_leaves_the_keys_as_they_are(tmp_path: Path) -> None:
    key = new_key("one")
    write_key_file(tmp_path, [key])
    watch = watch_keys(tmp_path)
    assert watch.current() == {key.id: key}
    content = (tmp_path / FILE_NAME).read_bytes()

    (tmp_path / FILE_NAME).write_bytes(content.replace(b"one", b"two"))
    time.sleep(0.1)

    assert read_key_file(tmp_path) is None
    assert watch.current() == {key.id: key}
    (tmp_path / FILE_NAME).unlink()
    time.sleep(0.1)
    assert watch.current() == {key.id: key}
