#!/usr/bin/env python3
"""Generate the data of the example library, with two hundred or many millions of papers.

The same arguments always produce the same bytes. Rows are written as they are generated, so memory
use does not grow with the library. The program needs only the standard library.

    python generate.py --out data
    python generate.py --papers 1000000 --citations 10000000 --out big
    python generate.py --papers 5000 --out - | gzip > library.ndjson.gz
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from generator import edges, nodes
from generator.outline import Library

# Nodes come first, so that the files can be loaded one after another in alphabetical order.
FILES: tuple[tuple[str, Callable[[Library], Iterator[str]]], ...] = (
    ("01-topic", nodes.topic_rows),
    ("02-institution", nodes.institution_rows),
    ("03-author", nodes.author_rows),
    ("04-venue", nodes.venue_rows),
    ("05-edition", nodes.edition_rows),
    ("06-paper", nodes.paper_rows),
    ("11-narrower-than", edges.narrower_rows),
    ("12-affiliated-with", edges.affiliation_rows),
    ("13-wrote", edges.wrote_rows),
    ("14-reviewed", edges.reviewed_rows),
    ("15-cites", edges.cites_rows),
    ("16-about", edges.about_rows),
    ("17-published-in", edges.published_rows),
    ("18-edition-of", edges.edition_of_rows),
)
CHUNK = 2000


def progress(text: str, end: str = "") -> None:
    """Show one line, which the next one replaces, if standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)


def write(rows: Iterator[str], out: BinaryIO, name: str) -> int:
    """Write all rows and return their number."""
    count = 0
    while chunk := list(islice(rows, CHUNK)):
        out.write("".join(chunk).encode())
        count += len(chunk)
        progress(f"{name}  {count:,} rows")
    return count


def write_files(library: Library, directory: Path) -> int:
    """Write one file per type. A file gets its final name only when it is complete."""
    directory.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, rows in FILES:
        part = directory / f"{name}.ndjson.part"
        with part.open("wb") as out:
            total += write(rows(library), out, name)
        part.replace(directory / f"{name}.ndjson")
    return total


def write_stream(library: Library, out: BinaryIO) -> int:
    """Write all rows to one stream."""
    total = sum(write(rows(library), out, name) for name, rows in FILES)
    out.flush()
    return total


def parser() -> argparse.ArgumentParser:
    """Build the command-line parser."""
    summary, _, rest = (__doc__ or "").partition("\n\n")
    made = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--out", required=True, metavar="DIR", help="Output directory, or - for standard output")
    made.add_argument("--papers", type=int, default=200, metavar="N", help="Number of papers [default: 200]")
    made.add_argument("--citations", type=int, metavar="N", help="Number of citations [default: five per paper]")
    made.add_argument(
        "--authors", type=int, metavar="N", help="Number of authors [default: three for every five papers]"
    )
    made.add_argument(
        "--institutions",
        type=int,
        metavar="N",
        help="Number of institutions [default: one per 250 authors, at least 20]",
    )
    made.add_argument(
        "--seed", type=int, default=1, metavar="N", help="Number that selects a different library [default: 1]"
    )
    return made


def library_of(arguments: argparse.Namespace) -> Library:
    """Return the library that the arguments describe; raise `ValueError` if they are invalid."""
    papers, seed = arguments.papers, arguments.seed
    # A small library cannot have five citations per paper, because papers cite only older papers.
    most = papers * (papers - 1) // 4
    citations = min(papers * 5, most) if arguments.citations is None else arguments.citations
    authors = max(1, papers * 3 // 5) if arguments.authors is None else arguments.authors
    institutions = arguments.institutions
    if institutions is None:
        institutions = max(20, authors // 250)
    for name, value in (("papers", papers), ("authors", authors), ("institutions", institutions)):
        if value < 1:
            raise ValueError(f"--{name} must be at least 1")
    if not 0 <= citations <= most:
        raise ValueError(f"--citations must be between 0 and {most} for {papers} papers")
    return Library(seed, papers, authors, institutions, citations)


def main() -> int:
    """Run the command."""
    command = parser()
    arguments = command.parse_args()
    try:
        library = library_of(arguments)
    except ValueError as error:
        command.error(str(error))
    started = time.monotonic()
    try:
        if arguments.out == "-":
            total = write_stream(library, sys.stdout.buffer)
        else:
            total = write_files(library, Path(arguments.out))
    except BrokenPipeError:
        # The reader has closed the pipe. Nothing may be written at exit, not even buffered data.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    progress(f"{total:,} rows in {time.monotonic() - started:.1f} s", end="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
