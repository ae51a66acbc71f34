"""Cleanup of a graph on S3: the same guarantees, by requests."""

import time
from datetime import timedelta

import pytest

import omnigraph
from omnigraph.errors import HistoryReclaimed
from omnigraph.maintenance.retention.collect_garbage import preview_cleanup
from omnigraph.maintenance.retention.policy import RetentionPolicy
from omnigraph.publish.branch_lifecycle import delete_branch
from tests.rig.plugin import S3

QUERY = "query q() { match { $p: P } return { $p.n } }"


@pytest.mark.full
def test_cleanup_on_s3_keeps_retained_files(s3: S3) -> None:
    graph = omnigraph.init(s3.url, "node P { name: String @key  n: I32? }")
    for n in range(4):
        graph.load([{"type": "P", "data": {"name": "a", "n": n}}], mode="merge")
    graph.tag("v1", "HEAD~1")
    graph.branches.create("side")
    delete_branch(graph._handle.store, "side")
    old = graph.log()[2].id
    report = graph.maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert report.old_versions_removed > 0
    assert not report.failed
    fresh = omnigraph.open(s3.url)
    assert fresh.query(QUERY).to_dicts() == [{"p.n": 3}]
    assert fresh.at("v1").query(QUERY).to_dicts() == [{"p.n": 2}]
    with pytest.raises(HistoryReclaimed):
        fresh.at(old).query(QUERY)
    fresh.load([{"type": "P", "data": {"name": "b", "n": 9}}], mode="append")
    graph.load([{"type": "P", "data": {"name": "c", "n": 9}}], mode="append")
    time.sleep(1.1)  # the times of S3 are whole seconds: what is younger counts as in use
    fresh.maintenance.cleanup(keep=1, grace=0, confirm=True)
    assert preview_cleanup(fresh._handle.store, RetentionPolicy(keep=1, grace=timedelta())).datasets == ()
    assert len(omnigraph.open(s3.url).query(QUERY)) == 3


def test_listing_by_levels_equals_a_flat_listing(s3: S3) -> None:
    graph = omnigraph.init(s3.url, "node P { name: String @key  n: I32? }")
    graph.load([{"type": "P", "data": {"name": "a", "n": 1}}], mode="merge")
    objects = graph._handle.store.objects
    found, places = [], ["nodes", "edges", "__manifest"]
    while places:
        levels = [objects.list_level(one) for one in places]
        found += [one for _, files in levels for one in files]
        places = [one for deeper, _ in levels for one in deeper]
    listed = [one for place in ("nodes", "edges", "__manifest") for one in objects.list(place)]
    assert sorted(found, key=lambda one: one.name) == sorted(listed, key=lambda one: one.name)
    assert len(found) > 5
