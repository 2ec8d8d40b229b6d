"""The probe: one short request through a proxy, as a crawler would send it.

Every probe is a fresh connection, every TLS peer is verified, and nothing of the operator's own
environment (HTTP_PROXY, NO_PROXY) has a say.
"""
