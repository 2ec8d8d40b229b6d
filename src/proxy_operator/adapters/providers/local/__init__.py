"""Local instances: one forward-proxy process per Proxy on this machine.

The processes outlive the operator, as VMs do. What runs is what holds the lock on its instance
directory; a pid proves nothing.
"""
