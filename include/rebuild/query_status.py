"""The stream driver's status of one version's query."""

from include.settings import Settings
from include.stream.checkpoints import query_name
from include.stream.status import FRESH_S, QueryStatus, read_queries


def query_status(settings: Settings, read_model: str, number: int) -> QueryStatus | None:
    """Return the status of a version's query that a running driver reported last, or None when it reports none.

    Raises KafkaUnavailableError when no broker responds.
    """
    name = query_name(read_model, number)
    return next(
        (
            query
            for query in read_queries(settings.kafka.bootstrap_servers)
            if query.query == name and query.reported_age_s < FRESH_S
        ),
        None,
    )
