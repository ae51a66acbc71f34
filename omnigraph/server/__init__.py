"""The HTTP server, which translates requests into calls to `omnigraph.api`, and results into responses.

The package owns routes, wire formats, authentication, admission and the worker processes. It must never implement graph
operations itself: every operation exists in `api`, and handlers only translate. Read `routes` first: it defines the
table that drives routing, the OpenAPI document, actions and limits. Then read `app.py`, which processes a request.
"""
