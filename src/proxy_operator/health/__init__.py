"""The health engine: when to probe, what to make of the outcomes, who to tell.

Owns health state, keyed by UID; status is written by the proxy reconciler alone.
"""
