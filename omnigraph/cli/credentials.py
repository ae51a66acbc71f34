"""Tokens for servers: the credentials file, the environment, and the references in profiles.

The file `credentials`, next to `config.yaml`, has a section for each server. It is readable only by its owner, and
a file with wider permissions is rejected. This module never prints a token and never contacts a server.
"""

import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from omnigraph.errors import ConfigError

from .operator_config import OperatorConfig, config_path

TOKEN_VARIABLE = "OMNIGRAPH_TOKEN"  # noqa: S105 - the name of a variable
_FILE_NAME = "credentials"
_SECTION = re.compile(r"\s*\[(.+)\]\s*")
_TOKEN_LINE = re.compile(r"\s*token\s*=\s*(.*?)\s*")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def credentials_path() -> Path:
    """Return the path of the credentials file; the file may not exist."""
    return config_path().with_name(_FILE_NAME)


def find_token(config: OperatorConfig, url: str, reference: str | None = None) -> str | None:
    """Return the token for a URL, or None.

    These sources are searched in order: the reference in a profile, the environment variable for the named server
    (`OMNIGRAPH_TOKEN_<NAME>`), the token stored for the server, and `OMNIGRAPH_TOKEN`. A stored token is sent only to
    the server that it was stored for.
    """
    if reference is not None:
        return resolve_reference(config, reference)
    section = server_section(config.servers, url)
    if section is not None and "://" not in section:
        keyed_token = os.environ.get(f"{TOKEN_VARIABLE}_{section.upper().replace('-', '_')}")
        if keyed_token:
            return keyed_token.strip()
    stored_tokens = read_tokens()
    sections = [*([section] if section is not None else []), *_matching_urls(stored_tokens, url)]
    stored_token = next((stored_tokens[name] for name in sections if name in stored_tokens), None)
    return stored_token or os.environ.get(TOKEN_VARIABLE, "").strip() or None


def server_section(servers: Mapping[str, str], url: str) -> str | None:
    """Return the name of the configured server whose URL is the longest prefix of the given URL, or None.

    >>> server_section({"prod": "https://db.example.org"}, "https://db.example.org/graphs/g")
    'prod'
    >>> server_section({"prod": "https://db.example.org"}, "https://db.example.org.evil.net/graphs/g") is None
    True
    """
    matching_names = [name for name, server_url in servers.items() if _is_below(url, server_url)]
    return max(matching_names, key=lambda name: len(servers[name]), default=None)


def _matching_urls(tokens: Mapping[str, str], url: str) -> list[str]:
    return sorted((name for name in tokens if "://" in name and _is_below(url, name)), key=len, reverse=True)


def _is_below(url: str, server_url: str) -> bool:
    prefix = server_url.rstrip("/")
    return url == prefix or url.startswith(f"{prefix}/")


def resolve_reference(config: OperatorConfig, reference: str) -> str:
    """Return the token that `env:VARIABLE` or `file:PATH` refers to."""
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        token = os.environ.get(name, "").strip()
        problem = f"the variable {name} is not set"
    elif kind == "file" and name:
        path = Path(name).expanduser()
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = f"cannot read the token in {path}: {getattr(error, 'strerror', None) or 'it is not text'}"
            raise ConfigError(reason=reason, path=str(config.path)) from None
        problem = f"{path} is empty"
    else:
        token, problem = "", "'token' must be env:VARIABLE or file:PATH, not the token itself"
    if not token:
        raise ConfigError(reason=problem, path=str(config.path))
    return token


def read_tokens() -> dict[str, str]:
    """Return the stored tokens by section; the file may be missing."""
    section, tokens = None, {}
    for line in _read_lines():
        header, member = _SECTION.fullmatch(line), _TOKEN_LINE.fullmatch(line)
        if header is not None:
            section = header[1]
        elif member is not None and section is not None:
            tokens[section] = member[1].strip("\"'")
    return tokens


def store_token(section: str, token: str) -> Path:
    """Store the token of a server and return the path of the file; other sections stay as they are."""
    lines = _without_section(_read_lines(), section)
    _write_lines([*lines, f"[{section}]", f"token = {token}"])
    return credentials_path()


def remove_token(section: str) -> bool:
    """Remove the token of a server; return whether a token was stored."""
    lines = _read_lines()
    remaining_lines = _without_section(lines, section)
    if len(remaining_lines) == len(lines):
        return False
    _write_lines(remaining_lines)
    return True


def _read_lines() -> list[str]:
    path = credentials_path()
    try:
        if path.stat().st_mode & _OTHERS:
            raise ConfigError(
                reason=f"other users can read {path}", path=str(path), hint=f"run `chmod 600 {path}`, then try again"
            )
        return path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(reason=f"cannot read {path}: {error.strerror}", path=str(path)) from None


def _without_section(lines: list[str], section: str) -> list[str]:
    kept_lines, is_kept = [], True
    for line in lines:
        header = _SECTION.fullmatch(line)
        if header is not None:
            is_kept = header[1] != section
        if is_kept:
            kept_lines.append(line)
    return kept_lines


def _write_lines(lines: list[str]) -> None:
    """Replace the file atomically; `mkstemp` creates files that only their owner can read."""
    path = credentials_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f".{_FILE_NAME}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        Path(temporary_path).replace(path)
    except OSError as error:
        raise ConfigError(reason=f"cannot write {path}: {error.strerror}", path=str(path)) from None
