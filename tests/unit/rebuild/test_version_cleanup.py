"""Tests of the removal of a version's files while something still writes to them."""

from pathlib import Path
from threading import Thread

from include.lake.tables import staging_path
from include.rebuild.version_cleanup import remove_staging


def test_a_folder_that_is_still_written_to_is_removed(tmp_path: Path) -> None:
    folder = Path(staging_path(str(tmp_path), "balance", 2))
    folder.mkdir(parents=True)
    writer = Thread(target=_write_snapshots, args=(folder,))
    writer.start()

    while writer.is_alive():
        remove_staging(str(tmp_path), "balance", 2)

    remove_staging(str(tmp_path), "balance", 2)
    assert not folder.exists()


def _write_snapshots(folder: Path) -> None:
    for number in range(3000):
        snapshot = folder / "state" / str(number % 7) / f"{number}.zip"
        try:
            snapshot.parent.mkdir(parents=True, exist_ok=True)
            snapshot.touch()
        except (FileNotFoundError, FileExistsError):  # a folder was removed in between
            continue
