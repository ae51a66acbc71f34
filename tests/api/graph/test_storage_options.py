"""Object-store settings passed by the caller, and the actor of the first commit."""

import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InputError, StorageError
from omnigraph.history.branches import open_branch
from omnigraph.storage.store import open_store
from tests.rig.plugin import S3
from tests.rig.writes import SCHEMA

VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")


def test_storage_options_suffice_to_open_a_graph(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ambient = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    options = {name: value for name, value in ambient.items() if name in (*VARIABLES, "AWS_REGION")}
    options["virtual_hosted_style_request"] = "false"
    for name in ambient:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    made = omnigraph.init(s3.url, SCHEMA, storage_options=options)
    again = omnigraph.open(s3.url, storage_options=options)
    assert again.head == made.head
    same = omnigraph.init(s3.url, SCHEMA, exist_ok=True, storage_options=options)
    assert same.head == made.head
    copy = f"{s3.url}-copy"
    again.maintenance.copy_to(copy, storage_options=options)
    assert omnigraph.open(copy, read_only=True, storage_options=options).head == made.head
    shown = " ".join((repr(made), repr(made._handle.store), str(made._handle.store.root.identity)))
    assert options["AWS_SECRET_ACCESS_KEY"] not in shown
    again.maintenance.copy_to(tmp_path / "home")
    assert omnigraph.open(tmp_path / "home").head == made.head


def test_different_options_do_not_share_branch_state(s3: S3) -> None:
    omnigraph.init(s3.url, SCHEMA)
    mine, theirs = open_store(s3.url), open_store(s3.url, storage_options={"connect_timeout": "4s"})
    assert open_branch(mine, "main") is open_branch(open_store(s3.url), "main")
    assert open_branch(theirs, "main") is not open_branch(mine, "main")


def test_invalid_options_are_reported_without_their_values(s3: S3, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown storage option"):
        omnigraph.open(s3.url, storage_options={"passwd": "hush"})
    with pytest.raises(InputError, match="storage options are not supported for a local directory"):
        omnigraph.init(tmp_path / "g", SCHEMA, storage_options={"region": "x"})
    with pytest.raises(StorageError) as caught:
        omnigraph.open(s3.url, storage_options={"endpoint": "ftp://me:hush@nowhere"})
    assert "hush" not in str(caught.value)


def test_first_commit_records_the_actor(tmp_path: Path) -> None:
    assert omnigraph.init(tmp_path / "g", SCHEMA, actor="ann").head.actor == "ann"
    assert omnigraph.open(tmp_path / "g").head.actor == "ann"
    assert omnigraph.init(tmp_path / "h", SCHEMA).head.actor is None
