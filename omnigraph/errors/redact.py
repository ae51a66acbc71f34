"""Remove secrets from URIs that are shown to users or written to logs.

A URI's userinfo, query and fragment may contain keys and signatures. URIs are not validated: if a string cannot be
parsed, every part that might be secret is removed.
"""

import re

REDACTED = "[redacted]"

_URI_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]+")


def redact_uri(uri: str) -> str:
    """Return the URI without its userinfo, query and fragment. A plain path is returned unchanged.

    >>> redact_uri("s3://key:secret@bucket/x?sig=abc#top")
    's3://bucket/x'
    >>> redact_uri("data/graph")
    'data/graph'
    """
    scheme, separator, location = uri.partition("://")
    if not separator:
        return uri
    location = location.split("?", 1)[0].split("#", 1)[0]
    return f"{scheme}://{_strip_user_info(location)}"


def redact_text(text: str) -> str:
    """Return the text with every URI in it redacted.

    >>> redact_text("cannot read 'https://me:pw@host/a?t=1': timeout")
    "cannot read 'https://host/a': timeout"
    """
    if "://" not in text:
        return text
    return _URI_PATTERN.sub(lambda uri_match: redact_uri(uri_match.group()), text)


def _strip_user_info(location: str) -> str:
    authority, slash, path = location.partition("/")
    if "@" in authority:
        return authority.rpartition("@")[2] + slash + path
    if not _looks_like_password(authority):
        return location
    # Cloud secrets often contain an unescaped slash, so this function assumes that the host begins after the last "@".
    return path.rpartition("@")[2] if "@" in path else REDACTED


def _looks_like_password(authority: str) -> bool:
    _, colon, port = authority.rpartition(":")
    return bool(colon) and not authority.startswith("[") and bool(port) and not port.isdigit()
