"""The stream driver's status of one version's query."""

from include.stream.checkpoints import query_name
from include.stream.query_reports import QueryReport, read_queries


def query_status(bootstrap_servers: str, read_model: str, number: int) -> QueryReport | None:
    """Return the status of a version's query that a running driver reported last, or None when it reports none.

    Raises KafkaUnavailableError when no broker responds.
    """
    name = query_name(read_model, number)
    queries = read_queries(bootstrap_servers)
    return next((query for query in queries if query.query == name and query.is_fresh), None)


def describe_query(query: QueryReport | None) -> str:
    """Return the status of a version's query as a clause."""
    if query is None:
        return "the stream driver reports no query for it (is the driver running?)"
    return f"its query is {query.phase}" + (f" ({query.last_error})" if query.last_error else "")
