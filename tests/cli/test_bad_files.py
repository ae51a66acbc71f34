"""Malformed schema and query files: every command reports the problem and its position."""

import re
from pathlib import Path

import pytest

from omnigraph.lang import coarse_scan, parsing
from tests.cli.conftest import Program

GOOD = {"a.pg": "node Lamp { watts: I32 }\n", "a.gq": ""}
# {} is the bad file.
COMMANDS = {
    "pg": [
        "schema check {}",
        "schema check {} --json",
        "schema diff {} a.pg",
        "schema diff a.pg {}",
        "lint --schema {}",
        "lint --schema {} --query a.gq --json",
        "lint --schema {} --format sarif",
        "fmt {}",
        "fmt {} --check",
        "fmt {} --json",
        "describe --schema {} --query a.gq",
        "--json-errors describe --schema {} --query a.gq",
    ],
    "gq": [
        "lint --schema a.pg --query {}",
        "lint --schema a.pg --query {} --json",
        "lint --schema a.pg --query {} --format sarif",
        "fmt {}",
        "fmt {} --diff",
        "fmt {} --json",
        "describe --schema a.pg --query {}",
        "--json-errors describe --schema a.pg --query {}",
    ],
}
LARGE = 10 * 1024 * 1024
END = parsing.MAX_SOURCE_CHARACTERS
ANY = {"pg": "node Lamp { watts: I32 }\n", "gq": "query q() { match { $l: Lamp } return { $l } }\n"}

# Name: bytes, then line and column of the mistake.
BAD: dict[str, tuple[bytes, int, int]] = {
    "binary": (bytes(range(256)) * 16, 2, 118),
    "nul": (b"// one\n// \0 two", 2, 4),
    "encoding": (b"// one\n// \xc3\xa9 \xc3( two", 2, 6),
    "encoding-at-the-end": (b"// \xe6\x97", 1, 4),
    "utf-16": ("// one\n ?".encode("utf-16"), 2, 2),
    "utf-16-cut-off": ("// é".encode("utf-16") + b" ", 1, 5),
    "byte-order-mark": (b"\xef\xbb\xbf  ?", 1, 3),
    "byte-order-mark-and-encoding": (b"\xef\xbb\xbf// \xff", 1, 4),
    "late-byte-order-mark": (b"// one\n\xef\xbb\xbf", 2, 1),
    "windows": (b"// one\r\n\r\n\t\t?\r\n", 3, 3),
    "lone-carriage-return": (b"\r\r?\r", 1, 3),
    "wide": ("/* 日本語 🎉 */ ?".encode(), 1, 13),
    "vertical-tab": (b"\n\x0b", 2, 1),
    "line-separator": ("/* \u2028 */ ?".encode(), 1, 9),
    "one-long-line": (b"x" * LARGE, 1, END + 1),
    "brackets": (b"[" * 200, 1, coarse_scan.MAX_BRACKET_DEPTH + 1),
    "many-brackets": (b"(" * 100_000, 1, coarse_scan.MAX_BRACKET_DEPTH + 1),
    "closing-brackets": (b"}" * 1000, 1, 1),
    "quotes": (b'"' * 1001, 1, 1),
    "open-comment": (b"// fine\n /* not fine", 2, 2),
    "prose": (b"Dear lamp,\nhow are you?", 1, 1),
}


def cases() -> list[object]:
    every = [(kind, words) for kind, lines in COMMANDS.items() for words in lines]
    few = {COMMANDS["pg"][0], COMMANDS["gq"][0]}  # for those that take their time
    return [
        pytest.param(kind, words, name, id=f"{words.format(kind)}-{name}")
        for name in BAD
        for kind, words in every
        if name != "many-brackets" or words in few
    ]


@pytest.mark.parametrize(("kind", "words", "name"), cases())
def test_every_command_reports_malformed_files(omnigraph: Program, kind: str, words: str, name: str) -> None:
    data, line, column = BAD[name]
    path = Path(f"bad.{kind}")
    path.write_bytes(data)
    for other, text in GOOD.items():
        Path(other).write_text(text)
    ended = omnigraph(*words.format(path).split())
    check(ended.out + ended.err, ended.code, f"{path}:{line}:{column}")
    assert path.read_bytes() == data


def check(said: str, code: int, place: str) -> None:
    """An error, in words or as an object, at a place."""
    _, line, column = place.split(":")
    assert code == 1
    assert "Traceback" not in said
    assert "unexpected" not in said  # that is what the last resort says
    as_object = rf'"line": {line},\s*"column": {column}\b'
    as_sarif = rf'"startLine": {line},\s*"startColumn": {column}\b'
    in_words = rf"^{re.escape(place)}: error"
    assert re.search(f"{as_object}|{as_sarif}|{in_words}", said, re.MULTILINE), said[:500]


@pytest.mark.parametrize("kind", ["pg", "gq"])
def test_oversized_file_is_rejected_before_parsing(
    omnigraph: Program, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("such a text is not even looked at")

    path = Path(f"bad.{kind}")
    text = ANY[kind]
    path.write_text(text * (LARGE // len(text)))
    Path("a.pg").write_text(GOOD["a.pg"])
    line, column = END // len(text) + 1, END % len(text) + 1
    monkeypatch.setattr("omnigraph.lang.coarse_scan.lexemes", never)
    ended = omnigraph("fmt", path)
    check(ended.err, ended.code, f"{path}:{line}:{column}")
    assert "the limit is 4,194,304" in ended.err


@pytest.mark.parametrize("words", [*COMMANDS["pg"], *COMMANDS["gq"]])
@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf", b"// only this", b"/* \xc3\xa9 */\r\n"])
def test_file_without_declarations_is_accepted(omnigraph: Program, words: str, data: bytes) -> None:
    path = Path("none.gq" if words in COMMANDS["gq"] else "none.pg")
    for name, text in GOOD.items():
        Path(name).write_text(text)
    path.write_bytes(data)
    ended = omnigraph(*words.format(path).split())
    same = data in (b"", b"\xef\xbb\xbf") or "--check" not in words
    assert ended.code == (0 if same else 5)
    assert "error:" not in ended.out + ended.err


@pytest.mark.parametrize("depth", [coarse_scan.MAX_BRACKET_DEPTH - 3, 200])
def test_deep_nesting_is_rejected(omnigraph: Program, depth: int) -> None:
    Path("a.pg").write_text(GOOD["a.pg"])
    condition = "(" * depth + "$l.watts > 1" + ")" * depth
    Path("a.gq").write_text(f"query q() {{ match {{ $l: Lamp {condition} }} return {{ $l }} }}")
    ended = omnigraph("lint", "--schema", "a.pg", "--query", "a.gq")
    deep = "brackets are nested more than 100 levels deep"
    assert (ended.code, deep in ended.out) == ((1, True) if depth == 200 else (0, False))
