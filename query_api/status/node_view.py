"""What the sections of the status have in common: the settings, the node's own view, and the other nodes."""

from dataclasses import dataclass

from include.declarations.catalog import Catalog
from include.errors import KafkaUnavailableError
from include.settings import Settings
from query_api.cluster.node_state import NodeState
from query_api.lookup.lookups import Lookups


@dataclass(frozen=True)
class NodeView:
    """One node, as its HTTP workers see it. catalog: of the enabled declarations."""

    settings: Settings
    lookups: Lookups
    catalog: Catalog

    def state(self) -> NodeState | None:
        """Return the latest state from the materializer; None before the first one."""
        return self.lookups.local.state()

    def require_kafka(self) -> None:
        """Raise KafkaUnavailableError at once while the materializer does not reach Kafka: a client would wait for long."""
        state = self.state()
        if state is None:
            raise KafkaUnavailableError("The materializer has not started yet.")
        if not state.is_kafka_reachable:
            raise KafkaUnavailableError(state.waiting_for or "Kafka does not answer.")
