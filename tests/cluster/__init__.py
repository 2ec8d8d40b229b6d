"""A real Kubernetes for the tests: a control plane on loopback, or a node that runs Pods.

Tests take it through the fixtures in `fixtures`; nothing here knows of proxies. What cannot be
started fails with one sentence that says what to do; nothing is skipped.
"""
