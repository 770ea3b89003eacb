"""Confirms that what was verified is still up to date, if nothing has happened since."""

import time

from include.declarations.read_model import ReadModel
from include.lake.tables import table_path
from include.quality import verified_file
from include.quality.check import StoreName
from include.quality.verified_tag import verified_by_all
from include.settings import Settings
from include.versions.source_ends import source_ends_if_known

SERVED = (StoreName.LAKE, StoreName.NODES)


def confirm_if_nothing_is_new(settings: Settings, model: ReadModel) -> bool:
    """Publish that lake and nodes are still verified up to the log's end, if they are; return whether they are."""
    from deltalake import DeltaTable  # noqa: PLC0415 - DAG files import this module, and are parsed repeatedly

    verified = verified_file.read(settings.home, model.name)
    if verified is None or verified.stores.keys() != {str(store) for store in SERVED}:
        return False
    now_s = time.time()
    servers, marks = settings.kafka.bootstrap_servers, verified.stores.values()
    ends = source_ends_if_known(servers, model, verified.version)
    unread = source_ends_if_known(servers, model, verified.version, verified_by_all(marks))
    table = DeltaTable(table_path(settings.lake_root, model.name))
    if (
        ends is None
        or unread is None
        or not all(ends.covers(m.verified_up_to) and m.verified_up_to.covers(unread) for m in marks)
        or verified.stores[str(StoreName.LAKE)].table_version != table.version()
    ):
        return False
    verified_file.confirm(settings.home, verified, now_s)
    return True
