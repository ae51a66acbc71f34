"""The JSON documents of the HTTP API as msgspec structs.

The structs validate request bodies, encode responses and generate the OpenAPI document. They contain only data. A
member whose default is `UNSET` is omitted if it does not apply. A member whose default is None is always present.
"""
