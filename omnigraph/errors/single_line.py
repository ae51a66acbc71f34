"""Keep each value in a message on a single line, so that its content cannot be mistaken for part of the message."""

import re

_LINE_BREAKERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def single_line(text: str) -> str:
    r"""Return the text with line breaks and all other control characters escaped.

    >>> print(single_line("b\nc"))
    b\nc
    """
    return _LINE_BREAKERS.sub(lambda character: repr(character.group())[1:-1], text)
