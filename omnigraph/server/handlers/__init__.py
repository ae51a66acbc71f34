"""Handlers: each takes a `ServerCall` and returns a response, translating between the wire and `omnigraph.api`.

Most handlers are plain functions that run in a thread. Handlers that wait are coroutines. Handlers have no state.
"""
