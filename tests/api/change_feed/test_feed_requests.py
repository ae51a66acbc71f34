"""Requests of a feed: one manifest for the whole range, then each new version once."""

import gc

import omnigraph
from tests.cost.measurements import Bill, golden, open_cold
from tests.rig.plugin import S3

SCHEMA = "node A { k: String @key }\nnode B { k: String @key }"
FEW, MANY, FOLDS = 4, 12, 2


def test_feed_requests_match_the_golden_file(s3: S3) -> None:
    bill = Bill(s3.proxy)
    graph = omnigraph.init(s3.url, SCHEMA)
    cursor = graph.changes.feed().cursor
    for n in range(MANY):
        graph.insert("AB"[n % 2], {"k": f"k{n}"})
    del graph
    totals = []
    for count in (FEW, MANY):
        gc.collect()
        cold = open_cold(s3.url)
        with bill.item(f"read {count} commits of one insert each, cold") as made:
            feed = cold.changes.feed(cursor=cursor)
            assert [len(next(feed).changes) for _ in range(count)] == [1] * count
        totals.append(sum(made.counts.values()))
    with bill.item("look for more, nothing new"):
        assert list(cold.changes.feed(cursor=feed.cursor)) == []
    with bill.item("look for more, one by one, nothing new"):
        assert cold.changes.poll(cursor=feed.cursor, limit=1).blocks == ()
    # A version opened, its new rows read; those that were folded on the way are looked at, too.
    assert totals[1] - totals[0] <= 3 * (MANY - FEW) + FOLDS
    assert bill.lines == golden("changes.txt", bill.lines)
