"""Removes secrets from places before people or logs see them.

User-info, query and fragment of a URI may hold keys and signatures. Never decides whether a URI
is valid: a text that cannot be taken apart loses whatever might be secret.
"""

import re

MARK = "[redacted]"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]+")


def redact_uri(uri: str) -> str:
    """The URI without user-info, query and fragment; a plain path is returned as it is.

    >>> redact_uri("s3://key:secret@bucket/x?sig=abc#top")
    's3://bucket/x'
    >>> redact_uri("data/graph")
    'data/graph'
    """
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return uri
    rest = rest.split("?", 1)[0].split("#", 1)[0]
    return f"{scheme}://{_without_user(rest)}"


def redact_text(text: str) -> str:
    """The text with every URI in it redacted.

    >>> redact_text("cannot read 'https://me:pw@host/a?t=1': timeout")
    "cannot read 'https://host/a': timeout"
    """
    if "://" not in text:
        return text
    return _URI.sub(lambda found: redact_uri(found.group()), text)


def _without_user(rest: str) -> str:
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        return authority.rpartition("@")[2] + slash + path
    if not _looks_like_password(authority):
        return rest
    # A key with an unescaped slash, as cloud secrets often have: the host is behind the last "@".
    return path.rpartition("@")[2] if "@" in path else MARK


def _looks_like_password(authority: str) -> bool:
    _, colon, port = authority.rpartition(":")
    return bool(colon) and not authority.startswith("[") and bool(port) and not port.isdigit()
