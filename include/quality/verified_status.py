"""How far behind the log the verified stores are, for the command line and Airflow."""

from dataclasses import dataclass

from include.declarations.read_model import ReadModel
from include.position import Offsets
from include.quality import verified_file
from include.quality.verified_tag import verified_by_all
from include.settings import Settings
from include.versions.source_ends import source_ends_if_known


@dataclass(frozen=True)
class VerifiedStatus:
    """How far one store of a read model is verified.

    events_behind: events after `verified_up_to`; None if Kafka does not respond. age_s: age of the oldest event that may not be
    verified, at most. full_age_s: since all keys were checked.
    """

    read_model: str
    version: int
    store: str
    verified_up_to: Offsets
    events_behind: int | None
    age_s: float
    full_age_s: float


def verified_statuses(
    settings: Settings, model: ReadModel, now_s: float, *, has_kafka: bool
) -> list[VerifiedStatus]:
    """Return how far the stores of a read model are verified at a time (Unix s); empty before the first check that passed.

    has_kafka: whether to ask Kafka for the number of events behind.
    """
    found = verified_file.read(settings.home, model.name)
    if found is None:
        return []
    verified = verified_by_all(found.stores.values())
    servers = settings.kafka.bootstrap_servers
    ends = source_ends_if_known(servers, model, found.version, verified) if has_kafka else None
    return [
        VerifiedStatus(
            found.read_model,
            found.version,
            store,
            mark.verified_up_to,
            None if ends is None else mark.verified_up_to.events_until(ends),
            mark.age_s(now_s),
            mark.full_age_s(now_s),
        )
        for store, mark in found.stores.items()
    ]
