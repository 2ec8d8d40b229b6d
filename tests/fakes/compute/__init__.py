"""A Compute Engine to test on: the REST calls of instances, on a world that tests can spoil.

From the inside out: `world` is what exists and happens (pure, on a Clock), `service` speaks its
REST dialect, checked against the vendor's API description (`discovery`), `transport` calls it in
process, on virtual time too, and `server` over HTTP. `ledger` remembers everything for ever: tests
assert it, and what the world holds, rather than calls.

By hand: `python -m tests.fakes.compute --help`.
"""
