"""The machinery of an operator: queue, informer, controller, manager, clock.

Knows nothing of proxies: a database operator could use it as it is. The words are
controller-runtime's, the semantics client-go's.
"""
