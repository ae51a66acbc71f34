"""One graph per engine with the same loads; contents and rejects must be equal.

"streamed" is the local engine as it loads large files: in small pieces, several threads and small fragments.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.api.load_routing import EngineOptions, resolve_load_source, run_load
from omnigraph.api.write_options import WriteOptions
from omnigraph.errors import OmnigraphError
from omnigraph.ingest.input_files import FileOptions
from omnigraph.ingest.input_parts import are_paths, find_input_files
from omnigraph.ingest.input_pieces import InputFiles
from omnigraph.ingest.streaming.streamed_load import STREAMED_MODES, StreamedInput

ENGINES = ("local", "streamed", "spark")
_PIECE_BYTES, _FRAGMENT_ROWS = 300, 3


class Engines:
    """The same graph once per engine."""

    def __init__(self, folder: Path, spark: Any, schema: str, data: str = "") -> None:
        self.folder, self.spark, self.count = folder, spark, 0
        self.graphs = {name: omnigraph.init(folder / name, schema, durability="os") for name in ENGINES}
        if data:
            for graph in self.graphs.values():
                graph.load(data.encode(), mode="append")

    def load(self, data: Any, mode: Any, **how: Any) -> Any:
        """Load on both; gives the counts, or the problems, after comparing them."""
        done = {name: self.on(name, data, mode, **how) for name in ENGINES}
        self.compare()
        assert done["local"] == done["streamed"] == done["spark"]
        return done["spark"]

    def text(self, text: str, mode: Any, **how: Any) -> Any:
        """Load a text, as a file."""
        self.count += 1
        file = self.folder / f"input-{self.count}.ndjson"
        file.write_text(text)
        return self.load(str(file), mode, **how)

    def on(self, engine: Any, data: Any, mode: Any, form: Any = None, mapping: Any = None, **how: Any) -> Any:
        """Load on one engine."""
        files = FileOptions(form, mapping or {}, how.pop("csv", None) or omnigraph.CsvOptions())
        graph = self.graphs[engine].refresh()
        way = EngineOptions("spark" if engine == "spark" else "local", self.spark, on_error="report", **how)
        try:
            source, _ = resolve_load_source(data, mode, files, way)
            if source is None:
                source = Files(data)
            if engine == "streamed" and are_paths(data) and mode in STREAMED_MODES:
                source = StreamedInput(find_input_files(data, files), False, _PIECE_BYTES, _FRAGMENT_ROWS)
            with graph._handle.accept_blobs():
                done = run_load(graph._handle.branch_state, source, mode, way, WriteOptions().commit_metadata(), ())
        except OmnigraphError as error:
            return type(error).__name__, error.message
        if done.problems:
            return shown(done.problems)
        return dict(done.nodes), dict(done.edges), done.commit is not None

    def compare(self, *names: str) -> None:
        """All graphs, or those of the named engines, hold the same; made ids aside."""
        first, *others = [contents(self.graphs[name]) for name in names or ENGINES]
        for other in others:
            assert other == first


def Files(data: Any) -> Any:
    return InputFiles(find_input_files(data))


def shown(problems: Any) -> Counter[tuple[Any, ...]]:
    """Problems as a multiset; an id that was made tells nothing."""
    return Counter(
        (one.file and Path(one.file).name, one.line, one.type, given(one.id), one.error.code) for one in problems
    )


def given(entity: str | None) -> str | None:
    from omnigraph.values.clock_and_ids import is_ulid

    return None if entity is None or is_ulid(entity) else entity


def contents(graph: Any) -> Counter[str]:
    """What a graph holds, as lines; made ids are left out."""
    found: Counter[str] = Counter()
    for line in graph.refresh().export():
        record = json.loads(line)
        record["data"]["id"] = given(record["data"]["id"])
        found[json.dumps(record, sort_keys=True)] += 1
    return found
