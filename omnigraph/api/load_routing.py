"""Run small loads in this process, and large loads or Spark DataFrames on Spark.

This module chooses the engine and implements what both engines have in common: rejects, dry runs and errors. Spark must
not be imported before it is chosen.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.api.engine_choice import Engine, check_engine
from omnigraph.errors import UsageError
from omnigraph.history.branch_state import BranchState
from omnigraph.ingest.input_files import FileOptions, InputFile, total_bytes
from omnigraph.ingest.input_parts import are_paths, find_input_files, has_files
from omnigraph.ingest.input_pieces import InputFiles
from omnigraph.ingest.load import LoadMode, LoadOptions, LoadOutcome, OnError, RequireRows, load
from omnigraph.ingest.rejects import write_rejects
from omnigraph.publish.requirements import Requirement
from omnigraph.publish.write_plan import CommitMetadata
from omnigraph.storage.sizes import FRAGMENT_ROWS

_log = logging.getLogger("omnigraph")
# The minimum input size, in bytes, for which Spark is used. On two cores, loading 429 MiB of NDJSON takes 30 seconds
# and 1 GiB of memory in this process, and 185 seconds on Spark; for larger inputs, this process could run out of
# memory.
SPARK_MIN_BYTES = 512 << 20


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

    def __post_init__(self) -> None:
        check_engine(self.engine)


@dataclass(frozen=True, slots=True)
class SparkInput:
    """Input for Spark to load: files, or DataFrames keyed by type."""

    input_files: Sequence[InputFile] = ()
    frames: Mapping[str, Any] | None = None


def resolve_load_source(data: Any, file_options: FileOptions, options: EngineOptions) -> SparkInput | InputFiles | None:
    """Determine a load's input and engine. Return None if the input needs no preparation.

    Input that needs no preparation is a single NDJSON file, or contains no files at all. It is always read by this
    process.
    """
    if isinstance(data, Mapping) and any(map(_is_spark_frame, data.values())):
        if options.engine == "local":
            raise UsageError(reason="a Spark DataFrame requires engine 'spark' or 'auto'")
        return SparkInput(frames=dict(data))
    if options.engine == "spark" and not are_paths(data):
        raise UsageError(reason="engine 'spark' loads only files and Spark DataFrames")
    if not has_files(data):
        return None
    input_files = find_input_files(data, file_options)
    is_large = options.engine == "auto" and are_paths(data) and total_bytes(input_files) >= SPARK_MIN_BYTES
    if options.engine == "spark" or (is_large and _can_start_spark(options)):
        return SparkInput(input_files)
    is_one_path = isinstance(data, str | os.PathLike)
    is_one_ndjson_file = is_one_path and len(input_files) == 1 and input_files[0].file_format == "ndjson"
    return None if is_one_ndjson_file else InputFiles(input_files)


def _can_start_spark(options: EngineOptions) -> bool:
    from omnigraph.spark.session import can_start_session

    if options.session is not None or options.remote is not None or can_start_session():
        return True
    _log.info("loading in this process because no Java installation was found for Spark")
    return False


def run_load(
    branch_state: BranchState,
    load_source: Any,
    mode: LoadMode,
    options: EngineOptions,
    commit_metadata: CommitMetadata,
    requirements: Sequence[Requirement],
) -> LoadOutcome:
    """Run a load. Write any problems to the rejects folder, then raise or return them."""
    if isinstance(load_source, SparkInput):
        loaded = _load_on_spark(branch_state, load_source, mode, options, commit_metadata, requirements)
    else:
        loaded = _load_in_process(branch_state, load_source, mode, options, commit_metadata, requirements)
    if options.rejects is not None:
        write_rejects(options.rejects, loaded.problems)
    if loaded.problems and options.on_error == "raise":
        first_problem = loaded.problems[0]
        raise (
            first_problem.standalone_error()
            if isinstance(load_source, InputFiles | SparkInput)
            else first_problem.error
        )
    return loaded


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
        piece_bytes=options.piece_bytes,
        fragment_rows=options.fragment_rows,
        progress=progress_callback(options.progress),
        require_rows=options.require_rows,
    )
    return load_on_spark(session, branch_state, bulk_load, commit_metadata=commit_metadata, requirements=requirements)


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
        on_error=on_error, dry_run=engine_options.dry_run, require_rows=engine_options.require_rows
    )
    loaded = load(
        branch_state, load_source, mode, metadata=commit_metadata, conditions=requirements, options=load_options
    )
    if not reads_files or not loaded.problems:
        return loaded
    return LoadOutcome(mode, problems=tuple(load_source.positions.locate_problems(loaded.problems)))


def _is_spark_frame(candidate: Any) -> bool:
    return hasattr(candidate, "mapInArrow")
