"""The provider `kubernetes`: each instance is a Pod with squid, beside its Proxy.

Speaks to the API server through `ports.ResourceClient` alone.
"""
