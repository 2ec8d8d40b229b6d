"""What every squid of ours is told, wherever it runs: pure text, shared by all providers.

Nothing here starts a process or talks to anybody.
"""
