"""Run small loads in this process, and large loads or Spark DataFrames on Spark.

This module chooses the engine and implements what both engines have in common: rejects, dry runs and errors. Spark must
not be imported unless it is chosen.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.api.engine_choice import Engine, check_engine
from omnigraph.api.load_engine import choose_load_engine, measure_work
from omnigraph.errors import UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.input_files import FileOptions, InputFile, total_bytes
from omnigraph.ingest.input_parts import are_paths, find_input_files, has_files
from omnigraph.ingest.input_pieces import InputFiles
from omnigraph.ingest.load import LoadMode, LoadOptions, LoadOutcome, OnError, RequireRows, load
from omnigraph.ingest.load_limits import LoadLimits, load_limits
from omnigraph.ingest.rejects import write_rejects
from omnigraph.ingest.streaming.streamed_load import PIECE_BYTES, STREAMED_MODES, StreamedInput, load_streamed
from omnigraph.publish.requirements import Requirement
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.plain_objects import is_s3_uri
from omnigraph.storage.sizes import FRAGMENT_ROWS

STREAM_MIN_BYTES = 32 << 20  # smaller inputs are loaded with all rows in memory, as one fragment per type


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings for a load: the engine, the Spark session or how to start one, and the rejects folder.

    For a patch or delete, `require_rows` returns the requirement that the affected rows have not changed since the
    caller read them. `progress` is called with the number of finished tasks and the number of tasks known so far. If
    `progress` has a `step` method, that method is called with a `StepProgress` instead.
    """

    engine: Engine = "auto"
    session: Any = None
    master: str | None = None
    remote: str | None = None
    rejects: str | os.PathLike[str] | None = None
    dry_run: bool = False
    on_error: OnError = "raise"
    progress: Any = None
    piece_bytes: int | None = None
    fragment_rows: int = FRAGMENT_ROWS
    require_rows: RequireRows | None = None
    limits: LoadLimits = field(default_factory=load_limits)

    def __post_init__(self) -> None:
        check_engine(self.engine)


@dataclass(frozen=True, slots=True)
class EngineReason:
    """The engine for a load and, if "auto" chose it, the reason."""

    engine: Literal["local", "spark"] = "local"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SparkInput:
    """Input for Spark to load: files, or DataFrames keyed by type."""

    input_files: Sequence[InputFile] = ()
    frames: Mapping[str, Any] | None = None


def resolve_load_source(
    data: Any, mode: LoadMode, file_options: FileOptions, options: EngineOptions, *, has_rows: bool = False
) -> tuple[SparkInput | StreamedInput | InputFiles | None, EngineReason]:
    """Determine a load's input and engine, and the reason for choosing the engine.

    The input is None if `data` is a small NDJSON file or contains no files. Such data needs no preparation and is
    always read by this process. `has_rows` indicates whether the graph has rows that a merge may replace.
    """
    if isinstance(data, Mapping) and any(map(_is_spark_frame, data.values())):
        if options.engine == "local":
            raise UsageError(reason="a Spark DataFrame requires engine 'spark' or 'auto'")
        return SparkInput(frames=dict(data)), EngineReason("spark", "the input contains Spark DataFrames")
    if options.engine == "spark" and not are_paths(data):
        raise UsageError(reason="engine 'spark' loads only files and Spark DataFrames")
    if not has_files(data):
        return None, EngineReason("local")
    input_files = find_input_files(data, file_options)
    engine_reason = EngineReason(options.engine if options.engine != "auto" else "local")
    if options.engine == "auto" and are_paths(data):
        work = measure_work(input_files, mode, has_rows=has_rows)
        prediction = choose_load_engine(work, options.session, options.remote)
        engine_reason = EngineReason(prediction.engine, prediction.reason)
    if engine_reason.engine == "spark":
        return SparkInput(input_files), engine_reason
    return _resolve_local_source(data, mode, input_files, options), engine_reason


def _resolve_local_source(
    data: Any, mode: LoadMode, input_files: Sequence[InputFile], options: EngineOptions
) -> StreamedInput | InputFiles | None:
    is_one_path = isinstance(data, str | os.PathLike)
    is_one_ndjson_file = is_one_path and len(input_files) == 1 and input_files[0].file_format == "ndjson"
    if are_paths(data) and mode in STREAMED_MODES and total_bytes(input_files) >= STREAM_MIN_BYTES:
        piece_bytes = options.piece_bytes or PIECE_BYTES
        return StreamedInput(input_files, is_one_ndjson_file, piece_bytes, options.fragment_rows)
    needs_preparation = not is_one_ndjson_file or is_s3_uri(input_files[0].path)
    return InputFiles(input_files) if needs_preparation else None


def run_load(
    branch_state: BranchState,
    load_source: Any,
    mode: LoadMode,
    options: EngineOptions,
    commit_metadata: CommitMetadata,
    requirements: Sequence[Requirement],
) -> LoadOutcome:
    """Run a load; write problems to the rejects folder, then raise or return them."""
    if isinstance(load_source, StreamedInput):
        loaded = _load_streamed(branch_state, load_source, mode, options, commit_metadata, requirements)
    elif isinstance(load_source, SparkInput):
        loaded = _load_on_spark(branch_state, load_source, mode, options, commit_metadata, requirements)
    else:
        loaded = _load_in_process(branch_state, load_source, mode, options, commit_metadata, requirements)
    if options.rejects is not None and not loaded.reject_files:
        write_rejects(options.rejects, loaded.problems)
    if loaded.problems and options.on_error == "raise":
        first_problem = loaded.problems[0]
        raise first_problem.standalone_error() if _names_files(load_source) else first_problem.error
    return loaded


def _names_files(load_source: Any) -> bool:
    """Return whether errors must name the file, because the input may consist of several files."""
    is_single_path = isinstance(load_source, StreamedInput) and load_source.is_single_path
    return isinstance(load_source, InputFiles | SparkInput | StreamedInput) and not is_single_path


def _load_on_spark(
    branch_state: BranchState,
    spark_input: SparkInput,
    mode: LoadMode,
    options: EngineOptions,
    commit_metadata: CommitMetadata,
    requirements: Sequence[Requirement],
) -> LoadOutcome:
    from omnigraph.spark.load import BulkLoad, load_on_spark
    from omnigraph.spark.session import spark_session
    from omnigraph.spark.step_progress import progress_callback

    session = options.session
    if session is None:
        session = spark_session(master=options.master, remote=options.remote)
    bulk_load = BulkLoad(
        mode,
        spark_input.input_files,
        spark_input.frames or {},
        options.dry_run,
        options.limits,
        piece_bytes=options.piece_bytes,
        fragment_rows=options.fragment_rows,
        progress=progress_callback(options.progress),
        require_rows=options.require_rows,
        rejects=None if options.rejects is None else os.fspath(options.rejects),
    )
    return load_on_spark(session, branch_state, bulk_load, commit_metadata=commit_metadata, requirements=requirements)


def _load_streamed(
    branch_state: BranchState,
    source: StreamedInput,
    mode: LoadMode,
    options: EngineOptions,
    commit_metadata: CommitMetadata,
    requirements: Sequence[Requirement],
) -> LoadOutcome:
    reports_all = not source.is_single_path or options.rejects is not None
    on_error: OnError = "report" if reports_all else options.on_error
    load_options = LoadOptions(on_error, options.limits, options.dry_run)
    return load_streamed(
        branch_state,
        source,
        mode,
        metadata=commit_metadata,
        conditions=requirements,
        options=load_options,
        progress=options.progress,
    )


def _load_in_process(
    branch_state: BranchState,
    load_source: Any,
    mode: LoadMode,
    engine_options: EngineOptions,
    commit_metadata: CommitMetadata,
    requirements: Sequence[Requirement],
) -> LoadOutcome:
    reads_files = isinstance(load_source, InputFiles)
    on_error: OnError = "report" if reads_files or engine_options.rejects is not None else engine_options.on_error
    load_options = LoadOptions(
        on_error, engine_options.limits, engine_options.dry_run, require_rows=engine_options.require_rows
    )
    loaded = load(
        branch_state, load_source, mode, metadata=commit_metadata, conditions=requirements, options=load_options
    )
    if not reads_files or not loaded.problems:
        return loaded
    return LoadOutcome(mode, problems=tuple(load_source.positions.locate_problems(loaded.problems)))


def _is_spark_frame(candidate: Any) -> bool:
    return hasattr(candidate, "mapInArrow")
