"""Keeps what a passed check has verified, for the next incremental check: how far each store is verified, and the records as of then."""

from collections.abc import Iterable

from include.position import SOURCE_OFFSET
from include.quality.check import StoreName
from include.quality.verified_tag import VerifiedMark
from include.replay.check.evaluation import Evaluation
from include.replay.check.verified import VerifiedStore

# The stores that follow the log, which are checked again and again.
KEPT_STORES = (StoreName.LAKE, StoreName.NODES)
KEPT = ", ".join(f"'{name}'" for name in KEPT_STORES)


def keep_verified(check: Evaluation, kept: VerifiedStore) -> dict[str, VerifiedMark]:
    """Keep what a passed check has verified; returns how far each of its stores is verified.

    A full check replaces the verified records, an incremental one adds to them.
    """
    request, verified = check.request, check.verified
    marks = {}
    for store, reading in check.readings:
        if store.name not in KEPT_STORES or not reading.replicas:
            continue
        # Those of a store have the same cut.
        cut = reading.replicas[0].cut
        keys = check.keys.below(store.name, cut)
        cut_at_s = check.target.cut_at_s - (check.lake_lag_s if store.name is StoreName.LAKE else 0.0)
        basis = None if verified is None else verified.marks[str(store.name)]
        full = (basis.full_run_id, basis.full_at_s) if basis else (request.run_id, check.target.cut_at_s)
        marks[str(store.name)] = VerifiedMark(cut, cut_at_s, keys, *full, reading.table_version)
    if not marks:
        return {}
    rows = _lowest(check.fields)
    if verified is not None:
        names = ", ".join(f'"{name}"' for name in ("key", *check.fields))
        offset = SOURCE_OFFSET.name
        rows = f"""SELECT {names} FROM verified UNION ALL
            SELECT {names} FROM ({rows}) AS new ANTI JOIN verified ON verified.key = new.key AND verified.{offset} = new.{offset}"""
    kept.write(rows, marks, request.run_id, verified.tag if verified else None)
    return marks


def _lowest(fields: Iterable[str]) -> str:
    """Return the replay up to each store's lowest record of each key, which all of its replicas contain."""
    record = ", ".join(f'record."{name}" AS "{name}"' for name in fields)
    return f"""SELECT key, {record} FROM (
        SELECT key, any_value(record) AS record FROM (
            SELECT key, arg_min(replayed, stored_offset) AS record, min(stored_offset) AS position FROM comparison JOIN replicas USING (place)
            WHERE store IN ({KEPT}) AND stored IS NOT NULL GROUP BY key, store) AS of_stores
        GROUP BY key, position) AS lowest"""
