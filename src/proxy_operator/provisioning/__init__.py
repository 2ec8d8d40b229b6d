"""The contract between the reconcilers and whatever makes instances.

Providers are adapters; decorators over them (metrics, fence, timeout) live here.
"""
