"""The JSON documents of the HTTP API as msgspec structs.

They validate request bodies, encode responses and generate the OpenAPI document. They hold data only. A member whose
default is `UNSET` is left out when it does not apply; a member whose default is None is always present.
"""
