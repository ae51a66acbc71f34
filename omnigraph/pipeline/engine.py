"""Choose the engine of a load: this process for small data, Spark for large or Spark-held data.

Owns that choice and what both engines share: rejects, dry runs, the error that is raised. Spark
must not be imported before it is chosen.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from omnigraph.errors import UsageError
from omnigraph.history.line import Line
from omnigraph.history.plan import Requirement, Signature
from omnigraph.ingest.load import Loaded, LoadMode, LoadOptions, OnError, load
from omnigraph.storage.sizes import FRAGMENT_ROWS

from .rejects import write_rejects
from .sources import Files, Input, Names, are_files, find_inputs, total_size

Engine = Literal["auto", "spark", "local"]
_log = logging.getLogger("omnigraph")
LARGE = 64 << 20  # bytes of input from which Spark is worth starting


def check_engine(engine: str) -> None:
    """Raise `UsageError` for an unknown engine."""
    if engine not in get_args(Engine):
        expected = ", ".join(get_args(Engine))
        raise UsageError(reason=f"unknown engine {engine!r}; expected one of {expected}")


@dataclass(frozen=True, slots=True)
class Way:
    """How to run a load: its engine, the Spark session or how to start one, where rejects go.

    `progress` is called with the number of finished and of known tasks; if it has a method `step`,
    that is called with a `StepProgress` instead.
    """

    engine: Engine = "auto"
    session: Any = None
    master: str | None = None
    remote: str | None = None
    rejects: str | os.PathLike[str] | None = None
    dry_run: bool = False
    on_error: OnError = "raise"
    progress: Any = None
    piece: int | None = None
    fragment_rows: int = FRAGMENT_ROWS

    def __post_init__(self) -> None:
        check_engine(self.engine)


@dataclass(frozen=True, slots=True)
class OnSpark:
    """An input that Spark will load: files, or DataFrames by type."""

    inputs: Sequence[Input] = ()
    frames: Mapping[str, Any] | None = None


def source_of(data: Any, form: str | None, mapping: Names, way: Way) -> OnSpark | Files | None:
    """Resolve what to load on which engine; None if only this process can read the input."""
    if isinstance(data, Mapping) and any(map(_is_frame, data.values())):
        if way.engine == "local":
            raise UsageError(reason="a Spark DataFrame requires engine 'spark' or 'auto'")
        return OnSpark(frames=dict(data))
    if not are_files(data):
        if way.engine == "spark":
            raise UsageError(reason="engine 'spark' loads only files and Spark DataFrames")
        return None
    inputs = find_inputs(data, form, mapping)
    large = way.engine == "auto" and total_size(inputs) >= LARGE
    if way.engine == "spark" or (large and _may_start(way)):
        return OnSpark(inputs)
    alone = len(inputs) == 1 and inputs[0].form == "ndjson"
    # This process reads one file per type directly.
    single = isinstance(data, Mapping) and all(
        isinstance(one, str | os.PathLike) for one in data.values()
    )
    return None if alone or (single and len(inputs) == len(data)) else Files(inputs)


def _may_start(way: Way) -> bool:
    from .session import may_start

    if way.session is not None or way.remote is not None or may_start():
        return True
    _log.info("loading in this process: no Java was found for Spark")
    return False


def run(
    line: Line,
    source: Any,
    mode: LoadMode,
    way: Way,
    signature: Signature,
    conditions: Sequence[Requirement],
) -> Loaded:
    """Run a load; problems are written to the folder of rejects, then raised or returned."""
    if isinstance(source, OnSpark):
        done = _on_spark(line, source, mode, way, signature, conditions)
    else:
        done = _here(line, source, mode, way, signature, conditions)
    if way.rejects is not None:
        write_rejects(way.rejects, done.problems)
    if done.problems and way.on_error == "raise":
        first = done.problems[0]
        raise first.alone() if isinstance(source, Files | OnSpark) else first.error
    return done


def _on_spark(
    line: Line,
    source: OnSpark,
    mode: LoadMode,
    way: Way,
    signature: Signature,
    conditions: Sequence[Requirement],
) -> Loaded:
    from .load import Bulk, load_on_spark
    from .session import spark_session
    from .steps import teller

    session = way.session
    if session is None:
        session = spark_session(master=way.master, remote=way.remote)
    bulk = Bulk(
        mode,
        source.inputs,
        source.frames or {},
        way.dry_run,
        piece=way.piece,
        rows=way.fragment_rows,
        progress=teller(way.progress),
    )
    return load_on_spark(session, line, bulk, signature=signature, conditions=conditions)


def _here(
    line: Line,
    source: Any,
    mode: LoadMode,
    way: Way,
    signature: Signature,
    conditions: Sequence[Requirement],
) -> Loaded:
    files = isinstance(source, Files)
    on_error: OnError = "report" if files or way.rejects is not None else way.on_error
    options = LoadOptions(on_error=on_error, dry_run=way.dry_run)
    done = load(line, source, mode, signature=signature, conditions=conditions, options=options)
    if not files or not done.problems:
        return done
    return Loaded(mode, problems=tuple(source.spots.locate(done.problems)))


def _is_frame(data: Any) -> bool:
    return hasattr(data, "mapInArrow")
