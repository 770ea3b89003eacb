"""Two query nodes for all tests of this folder, as for those of `query_nodes`."""

from tests.integration.query_nodes.conftest import nodes, running_nodes

__all__ = ["nodes", "running_nodes"]
