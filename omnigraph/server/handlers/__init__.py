"""Handlers: each takes a `ServerCall` and returns an answer, translating between the wire and `omnigraph.api`.

Most handlers are plain functions that run in a thread; those that wait are coroutines. They hold no state.
"""
