"""HTTP: the discovery API, the health and the metrics endpoints, and the server they share.

One route table feeds both the dispatcher and the OpenAPI document. Handlers are synchronous and
see no socket; only `asgi`, `protocol` and `server` know uvicorn.
"""
