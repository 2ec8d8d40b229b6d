"""The Kubernetes API: where it is, how we prove who we are, and how its objects come and go.

Wiring: `discover_access` finds the cluster and our credentials, the client sends with them, and
everything else here speaks through that client. The rule: nothing here decides about proxies.
"""
