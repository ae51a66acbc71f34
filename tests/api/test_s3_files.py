"""Files on S3 without Spark: loads, exports, AWS profiles, and errors that name the object."""

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import testing
from omnigraph.api import load_routing
from omnigraph.api.graph import Graph
from omnigraph.cli.main import run
from omnigraph.errors import InputError
from omnigraph.ingest.input_files import open_input_file, s3_file_system
from omnigraph.ingest.input_parts import find_input_files
from omnigraph.storage.root import s3_options
from tests.rig.graph_hosts import GraphHost
from tests.rig.plugin import S3

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
PEOPLE = b"""{"type":"Person","data":{"name":"ada","age":36}}
{"type":"Person","data":{"name":"bob","age":null}}
{"edge":"Knows","from":"ada","to":"bob"}
"""


def put(uri: str, content: bytes) -> None:
    system = s3_file_system(s3_options(os.environ))
    with system.open_output_stream(uri.removeprefix("s3://"), compression=None) as file:
        file.write(content)


def read(uri: str) -> bytes:
    with s3_file_system(s3_options(os.environ)).open_input_file(uri.removeprefix("s3://")) as file:
        return bytes(file.read())


def names(graph: Graph) -> list[str]:
    return sorted(row["name"] for row in graph.nodes("Person").to_dicts())


def test_objects_folders_and_patterns_are_loaded(graphs: GraphHost, s3: S3) -> None:
    put(f"{s3.url}/in/people.ndjson", PEOPLE)
    put(f"{s3.url}/in/more/Person.csv", b"name,age\ncyd,7\n")
    put(f"{s3.url}/in/zipped.ndjson.gz", gzip.compress(b'{"type":"Person","data":{"name":"dan"}}\n'))
    graph = graphs.init(SCHEMA)
    receipt: Any = graph.load(f"{s3.url}/in/people.ndjson", mode="append")
    assert receipt.total == 3
    graph.load(f"{s3.url}/in/*.gz", mode="append")
    graph.load({"Person": f"{s3.url}/in/more"}, mode="append")
    assert names(graph) == ["ada", "bob", "cyd", "dan"]


def test_large_objects_are_streamed(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_routing, "STREAM_MIN_BYTES", 1)
    monkeypatch.setattr(load_routing, "PIECE_BYTES", 60)
    put(f"{s3.url}/people.ndjson", PEOPLE)
    with testing.graph(SCHEMA) as graph:
        receipt: Any = graph.load(f"{s3.url}/people.ndjson", mode="append")
        assert (receipt.total, set(receipt.steps)) == (3, {"stage", "check", "publish"})
        assert names(graph) == ["ada", "bob"]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_an_export_is_written_and_can_be_loaded_again(graphs: GraphHost, s3: S3, suffix: str) -> None:
    graph, copy = graphs.init(SCHEMA), graphs.init(SCHEMA)
    graph.load(PEOPLE, mode="append")
    target = f"{s3.url}/out/all.ndjson{suffix}"
    assert graph.export(target) == 3
    if not suffix:
        assert read(target) == b"".join(graph.export())
    copy.load(target, mode="append")
    assert b"".join(copy.export(types=["Person"])) == b"".join(graph.export(types=["Person"]))


def test_a_profile_gives_access(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(f"{s3.url}/people.ndjson", PEOPLE)
    credentials = tmp_path / "credentials"
    key, secret = s3.server.key, s3.server.secret
    credentials.write_text(f"[lab]\naws_access_key_id={key}\naws_secret_access_key={secret}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    with testing.graph(SCHEMA) as graph:
        graph.load(f"{s3.url}/people.ndjson", mode="append")
        assert graph.export(f"{s3.url}/copy.ndjson") == 3
    assert read(f"{s3.url}/copy.ndjson").count(b"\n") == 3


def test_errors_name_the_object(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    put(f"{s3.url}/bad.ndjson", PEOPLE + b"{}\n")
    with testing.graph(SCHEMA) as graph:
        with pytest.raises(InputError, match=rf"{s3.url}/none.ndjson"):
            graph.load(f"{s3.url}/none.ndjson", mode="append")
        with pytest.raises(InputError, match=rf"{s3.url}/bad.ndjson: line 4"):
            graph.load(f"{s3.url}/bad.ndjson", mode="append")
        with pytest.raises(InputError, match="expected s3://bucket/name"):
            graph.export("s3://bucket")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(InputError, match=rf"cannot write {s3.url}/out.ndjson"):
            graph.export(f"{s3.url}/out.ndjson")
        with pytest.raises(InputError, match=rf"{s3.url}/bad.ndjson"):
            graph.load(f"{s3.url}/bad.ndjson", mode="append")
        assert not Path("s3:").exists()


@pytest.mark.parametrize("name", ["none.ndjson", "none/*.ndjson", "Person.parquet"])
def test_errors_of_a_store_are_explained(s3: S3, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No text of an S3 library is shown."""

    def reason(uri: str) -> str:
        with testing.graph(SCHEMA) as graph, pytest.raises(InputError) as caught:
            graph.load(uri, mode="append")
        assert not re.search(r"(?i)curl|aws error|\bhttp|operation|generic", caught.value.message)
        assert caught.value.message.startswith(f"cannot read {uri}: ")
        return f"{caught.value.message.removeprefix(f'cannot read {uri}: ')}; {caught.value.hint}"

    missing = "no files match the pattern" if "*" in name else "no such object"
    assert reason(f"{s3.url}/{name}") == f"{missing}; correct the input"
    assert reason(f"s3://no-such-bucket/{name}").startswith("the bucket 'no-such-bucket' does not exist; ")
    with monkeypatch.context() as environment:
        environment.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        assert reason(f"{s3.url}/{name}").startswith("the store denied access; check the AWS_* variables")
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert reason(f"{s3.url}/{name}").startswith("the store does not respond; check AWS_ENDPOINT_URL")


def test_object_that_disappears_is_named(s3: S3) -> None:
    put(f"{s3.url}/people.ndjson", PEOPLE)
    (file,) = find_input_files(f"{s3.url}/people.ndjson")
    s3_file_system(s3_options(os.environ)).delete_file(f"{s3.url}/people.ndjson".removeprefix("s3://"))
    with pytest.raises(InputError, match=rf"^cannot read {s3.url}/people.ndjson: no such object$"):
        open_input_file(file)


def test_the_command_line_reads_and_writes_objects(s3: S3, tmp_path: Path) -> None:
    put(f"{s3.url}/people.ndjson", PEOPLE)
    graph_path = str(tmp_path / "g")
    omnigraph.init(graph_path, SCHEMA)
    assert run(["load", graph_path, "--data", f"{s3.url}/people.ndjson", "--mode", "append"]) == 0
    assert run(["export", graph_path, "--out", f"{s3.url}/out.ndjson"]) == 0
    assert read(f"{s3.url}/out.ndjson").count(b"\n") == 3
