"""What a check with either engine does alike with the query nodes: it finds their replicas, counts their keys, and says what was read."""

import time
from collections.abc import Iterable

from include.nodes.node_url import PeerRule
from include.nodes.record_client import NodeClient
from include.position import Offsets
from include.quality.check import StoreName
from include.replay.check.readings import Reading, Replica
from include.replay.check.target import CheckTarget

# Few, because the nodes also serve lookups.
READERS = 4
# Of each replica, the records of some keys are read as applications read them: the node decodes them, and answers in JSON.
ANSWERS = 100
ANSWERS_OF_BATCH = 4


class NodeReplicas:
    """Every partition of the version on every node that stores it, as owner or standby.

    A partition is read as one stream while its records change: each record is compared as of its own position.
    """

    name = StoreName.NODES
    may_catch_up = True

    def __init__(self, target: CheckTarget) -> None:
        settings, model = target.settings, target.model
        self._target = target
        self._wait_s = settings.quality.wait_s
        self._client = NodeClient(
            settings.kafka_connection,
            PeerRule.of_client(settings),
            model.name,
            target.version.number,
            model.declared_topic,
        )
        self._replicas = self._client.ready_replicas(self._wait_s)

    def key_counts(self) -> dict[str, int]:
        """Return the number of keys of each partition on each node."""
        deadline_s = self._deadline_s()
        return {replica.name: self._client.key_count(replica, deadline_s) for replica in self._replicas.ready}

    def lag_s(self, complete_up_to: Offsets) -> float:
        """Return 0: only the age of the lake is limited."""
        del complete_up_to
        return 0.0

    def close(self) -> None:
        """Close the connections to the nodes."""
        self._client.close()

    def _reading(self, faults: Iterable[str]) -> Reading:
        """Return what was read. faults: of the replicas that could not be read."""
        found, cut = self._replicas, self._target.cut
        replicas = tuple(Replica(r.name, str(self.name), cut, r.partition) for r in found.ready)
        unowned = (f"partition {partition} has no ready owner" for partition in found.unowned)
        return Reading(replicas, (*faults, *unowned, *found.unreachable))

    def _deadline_s(self) -> float:
        return time.monotonic() + self._wait_s
