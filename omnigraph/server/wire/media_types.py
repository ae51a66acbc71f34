"""Choose the media type of a response from the `Accept` header, and check the media type of a request body."""

from collections.abc import Sequence

from omnigraph.errors import NotAcceptable, UnsupportedMediaType


def choose_media_type(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that the client prefers, or the first of several equally preferred types.

    Raises `NotAcceptable` if the client accepts none of them.

    >>> offered = ["application/json", "text/csv"]
    >>> choose_media_type("text/*;q=0.5, */*;q=0.1", offered), choose_media_type(None, offered)
    ('text/csv', 'application/json')
    """
    if not accept or accept == "*/*" or accept == offered[0]:
        return offered[0]
    ranges = [_read_range(text) for text in accept.split(",") if text.strip()]
    best_name, best_quality = "", 0.0
    for media_type in offered:
        quality = _quality_of(media_type, ranges)
        if quality > best_quality:
            best_name, best_quality = media_type, quality
    if not best_name:
        raise NotAcceptable(media_types=", ".join(offered))
    return best_name


def _read_range(text: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
    try:
        return media_range, min(max(float(quality), 0.0), 1.0)
    except ValueError:
        return media_range, 0.0


def _quality_of(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the quality of the most specific range that includes a media type."""
    main_type = media_type.partition("/")[0]
    for spelling in (media_type, f"{main_type}/*", "*/*"):
        qualities = [quality for media_range, quality in ranges if media_range == spelling]
        if qualities:
            return max(qualities)
    return 0.0


def accept_parameter(accept: str | None, media_type: str, name: str) -> str | None:
    """Return a parameter of a media type in an `Accept` header, such as the compression of Arrow batches.

    >>> accept_parameter("text/csv;q=0.5;header=absent", "text/csv", "header")
    'absent'
    """
    for text in (accept or "").split(","):
        media_range, *parameters = (part.strip().lower() for part in text.split(";"))
        if media_range == media_type:
            for parameter in parameters:
                parameter_name, _, value = parameter.partition("=")
                if parameter_name == name:
                    return value.strip('"')
    return None


def check_content_type(content_type: str | None, expected: Sequence[str], *, is_empty: bool) -> str:
    """Return the media type of a body; raise `UnsupportedMediaType` for an unexpected type."""
    if content_type is None:
        if is_empty:
            return expected[0]
        raise UnsupportedMediaType(f"the body requires a Content-Type: {' or '.join(expected)}")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in expected:
        raise UnsupportedMediaType(f"unsupported Content-Type; expected {' or '.join(expected)}")
    return media_type
