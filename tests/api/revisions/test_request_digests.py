"""The digests of merges, reverts, cherry-picks, resets and schema changes never change.

Commits of earlier releases contain them, and a repeated request must still match.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import omnigraph
from omnigraph.api.repeated_merges import describe_merge_request, describe_revision
from omnigraph.api.request_digest import canonical_text, digest_request
from omnigraph.history.revisions import Revision
from omnigraph.merging.merge import MergeRequest
from omnigraph.merging.planner import MergeOptions
from omnigraph.server.handlers.merges import make_strategy
from omnigraph.server.models.requests import ConflictResolution

SCHEMA = "node Person { name: String @key }"
WIDER = "node Person { name: String @key  age: I32? }"


def test_the_canonical_form_of_a_merge() -> None:
    request = MergeRequest(MergeOptions("entity", collapse_edges=True), {"Person": "ours", "*": "theirs"})
    form = "('merge', 'main', 'dev', [('*', 'theirs'), ('Person', 'ours')], 'entity', True)"
    assert canonical_text(describe_merge_request("merge", "main", "dev", request)) == form
    plain = "('revert', 'main', ('HEAD', None), None, 'property', False)"
    assert canonical_text(describe_merge_request("revert", "main", ("HEAD", None), MergeRequest())) == plain


def test_the_canonical_form_of_a_function() -> None:
    request = MergeRequest(strategy=lambda _: "ours")
    form = "('merge', 'main', 'dev', ('function', ''), 'property', False)"
    assert canonical_text(describe_merge_request("merge", "main", "dev", request)) == form


def test_the_digest_of_resolutions() -> None:
    resolution = ConflictResolution(type_name="Person", entity_id="ada", values={"age": 3, "tags": ["x"]})
    strategy = make_strategy({"City": "ours"}, [resolution])
    digest = "be94ce5d1d928604860a4724f14b578dd1a169556b05079d7dc41489005ef567"
    assert getattr(strategy, "content_digest") == digest  # noqa: B009 - only some strategies have it
    others = [
        make_strategy(None, [resolution]),
        make_strategy({"City": "ours"}, [resolution, resolution]),
        make_strategy({"City": "ours"}, [ConflictResolution(type_name="Person", entity_id="ada", choice="ours")]),
    ]
    assert digest not in [getattr(other, "content_digest") for other in others]  # noqa: B009


def test_a_revision_is_described_as_it_was_written() -> None:
    moment = datetime(2030, 1, 2, 3, tzinfo=UTC)
    revisions: list[Revision] = [" HEAD~1 ", 7, moment, timedelta(minutes=-1)]
    texts = ["HEAD~1", "7", "2030-01-02T03:00:00+00:00", "60.0 seconds ago"]
    assert [describe_revision(revision) for revision in revisions] == texts


def test_commits_contain_the_digests_of_their_requests(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA, durability="os")
    graph.branches.create("dev").insert("Person", {"name": "ada"})
    graph.merge("dev", idempotency_key="1")
    graph.revisions.revert("HEAD", idempotency_key="2")
    graph.revisions.cherry_pick("dev", mainline=1, idempotency_key="3")
    graph.branches.reset("main", to="HEAD~1", idempotency_key="4")
    graph.schema.apply(WIDER, idempotency_key="5")
    forms = [
        "('merge', 'main', 'dev', None, 'property', False)",
        "('revert', 'main', ('HEAD', None), None, 'property', False)",
        "('cherry_pick', 'main', ('dev', 1), None, 'property', False)",
        "('reset', 'main', 'HEAD~1')",
        f"('schema_apply', 'main', '{WIDER}', False)",
    ]
    digests = {commit.key: commit.request for commit in graph.refresh().log() if commit.key is not None}
    assert digests == {str(number): hashlib.sha256(form.encode()).hexdigest() for number, form in enumerate(forms, 1)}


def test_the_digest_of_one_form() -> None:
    assert (
        digest_request(("reset", "main", "HEAD~1"))
        == "b71f1a03d551fd342cc4c74567f2367a5bb927d01a3e14d00d87b8887a254c4d"
    )
