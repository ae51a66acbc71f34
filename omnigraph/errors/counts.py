"""Format a number with its noun in the singular or the plural."""


def format_count(number: int, noun: str) -> str:
    """Return a number and its noun, such as `1 error` or `2 errors`.

    >>> format_count(2, "query"), format_count(2, "branch"), format_count(0, "key")
    ('2 queries', '2 branches', '0 keys')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith(("ch", "sh", "x", "s")):
        return f"{number} {noun}es"
    ends_in_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{number} {noun[:-1]}ies" if ends_in_ies else f"{number} {noun}s"
