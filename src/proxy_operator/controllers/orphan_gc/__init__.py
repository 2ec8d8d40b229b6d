"""Garbage collection: instances that carry our labels and that no Proxy owns any more."""
