"""Changes of single commits, and of pages of the feed."""

from omnigraph import Graph


def test_changes_of_a_commit_are_read_whole_and_in_pages(graph: Graph) -> None:
    receipt = graph.insert("Note", *({"text": str(number)} for number in range(5)))
    assert receipt.commit_id is not None
    ids = sorted(receipt.ids["Note"])
    assert [change.id for change in graph.changes.of_commit(receipt.commit_id)] == ids
    first = graph.changes.commit_page(receipt.commit_id, limit=2)
    assert [change.id for change in first.changes] == ids[:2]
    pages = list(graph.changes.commit_pages(receipt.commit_id, limit=2))
    assert [change.id for page in pages for change in page.changes] == ids


def test_a_poll_continues_at_its_cursor(graph: Graph) -> None:
    start = graph.changes.poll(start="now").cursor
    receipts = [graph.insert("Note", {"text": text}) for text in "ab"]
    page = graph.changes.poll(cursor=start)
    assert [block.commit.id for block in page.blocks] == [receipt.commit_id for receipt in receipts]
    assert graph.changes.poll(cursor=page.cursor).blocks == ()
