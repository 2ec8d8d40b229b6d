"""The provider `gcp`: each instance is a Compute Engine VM with an address of its own.

Four REST calls through `session.Session`; the client library is an optional extra that only
`google_session` imports.
"""
