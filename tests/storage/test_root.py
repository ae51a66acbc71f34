"""Root locations: identity, effective settings, and hidden secrets."""

import pytest

from omnigraph.errors import InputError, StorageError
from omnigraph.storage.root import parse_root
from omnigraph.storage.s3 import S3Backend
from omnigraph.storage.store import open_store

URI = "s3://lake/people"
KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "hush"}


def test_equal_buckets_on_two_servers_are_different_roots() -> None:
    one, other = (parse_root(URI, {"AWS_ENDPOINT_URL": f"http://{name}:9000"}) for name in ("one", "other"))
    assert one.uri == other.uri
    assert len({one.identity, other.identity, parse_root(URI, {}).identity}) == 3


def test_root_identity_does_not_depend_on_credentials() -> None:
    plain = parse_root(URI, {"AWS_ENDPOINT_URL": "http://one:9000"})
    mine = parse_root(URI, {"AWS_ENDPOINT_URL": "http://me:hush@one:9000/", **KEYS})
    assert mine.identity == plain.identity
    assert mine.access_hash != plain.access_hash
    assert mine.access_hash == parse_root(URI, {"AWS_ENDPOINT_URL": "http://me:hush@one:9000/", **KEYS}).access_hash


def test_secrets_are_shown_nowhere() -> None:
    root = parse_root(URI, KEYS, {"aws_session_token": "hush", "endpoint": "http://a:hush@b"})
    store = open_store(URI, storage_options={"secret_access_key": "hush", "access_key_id": "me"})
    shown = [repr(root), root.identity, root.uri, repr(store), str(root.access_hash)]
    assert [one for one in shown if "hush" in one] == []


def test_options_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    ambient = {**KEYS, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": "http://a"}
    given = {"AWS_REGION": "eu-west-1", "endpoint_url": "http://b", "Allow_HTTP": True}
    found = parse_root(URI, ambient, given).options
    assert found["aws_region"] == "eu-west-1"
    assert found["aws_endpoint"] == "http://b"
    assert found["allow_http"] == "true"
    assert found["aws_secret_access_key"] == "hush"
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    S3Backend.connect(open_store(URI, storage_options=given).root)
    with pytest.raises(StorageError, match="plain http"):
        open_store(URI)


def test_option_with_value_none_is_ignored() -> None:
    assert parse_root(URI, {"AWS_REGION": "x"}, {"region": None}).options["aws_region"] == "x"


def test_an_unknown_option_is_refused_without_its_value() -> None:
    with pytest.raises(InputError, match="aws_secert_key") as caught:
        parse_root(URI, {}, {"aws_secert_key": "hush"})
    assert "hush" not in f"{caught.value} {caught.value.hint} {caught.value.to_json()}"


def test_local_root_rejects_options() -> None:
    with pytest.raises(InputError, match="storage options are not supported for a local directory"):
        parse_root("here", {}, {"region": "x"})
    assert parse_root("here", {}, {}).is_local
