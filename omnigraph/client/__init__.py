"""The Python client for an Omnigraph server: a graph on a server, with the interface of an embedded graph.

`exchange` sends requests, and the other modules turn method calls into requests. This package imports neither the
server nor the storage layer, and nothing in it opens a graph's files.
"""
