"""The headers of a request, indexed by name, because about a dozen of them are looked up for each request."""

from typing import Any

from starlette.datastructures import Headers


class RequestHeaders(Headers):
    """Headers by case-insensitive name; `get` returns a header's first value, and `getlist` returns all of them."""

    def __init__(self, scope: Any) -> None:
        super().__init__(scope=scope)
        self._first_values = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.raw)}

    def __getitem__(self, name: str) -> str:
        return self._first_values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._first_values

    def get(self, name: str, default: Any = None) -> Any:
        """Return the first value of a header, or the default."""
        return self._first_values.get(name.lower(), default)

    def getlist(self, name: str) -> list[str]:
        """Return all values of a header, in order."""
        return super().getlist(name) if name in self else []
