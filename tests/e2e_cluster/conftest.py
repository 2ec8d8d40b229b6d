"""Every test here runs against one real cluster with a node, started for the session."""

from tests.cluster.fixtures import node_cluster

__all__ = ["node_cluster"]
