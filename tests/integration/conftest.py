"""Every test here speaks to one real API server, started for the session."""

from tests.cluster.fixtures import kube_api

__all__ = ["kube_api"]
