"""Prometheus metrics: the catalogue, one recorder per port, collectors read at scrape time."""
