"""The HTTP server: it translates requests to calls of `omnigraph.api`, and results to responses.

The package owns routes, wire formats, authentication, admission and the worker processes. It must never contain rules
of the graph itself: every verb exists in `api`, and a handler only translates. Read `routes.py` first, the one table
that drives routing, the OpenAPI document, actions and limits; then `app.py`, the way of one request.
"""
