"""proxy-operator: the declarative fleet manager for crawl proxies.

The package holds the version and nothing else; importing it must stay free of side effects.
"""

__version__ = "0.1.0"
