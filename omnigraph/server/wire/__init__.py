"""The wire format: error objects, request bodies, query parameters, media types and entity tags.

Nothing here knows a graph, and nothing here may put storage paths, tokens or query texts into a response.
"""
