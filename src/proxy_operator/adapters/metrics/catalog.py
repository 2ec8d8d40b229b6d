"""Every metric: name, labels, help."""

import prometheus_client

__all__ = ["prometheus_client"]
