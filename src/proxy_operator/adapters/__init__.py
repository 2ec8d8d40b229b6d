"""Everything that names a library: stores, providers, probes, HTTP, metrics, logs.

Adapters are strangers to each other, and only `app` imports them.
"""
