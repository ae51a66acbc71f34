"""The wire format: error objects, request bodies, query parameters, media types and entity tags.

This package does not depend on graphs. It must never put storage paths, tokens or query text into a response.
"""
