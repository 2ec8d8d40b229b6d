"""The proxy reconciler: one pass over one Proxy, as an order of steps and one status write.

Steps change only the draft in `Pass`; each file holds one step, decisions are pure functions.
"""
