"""Compares a running program: the product must show what the model has.

Everything is read through public doors; rows of a table version are read once.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph as Handle
from omnigraph.errors import ChangeSchemaBoundary, HistoryReclaimed, SnapshotNotFound
from omnigraph.history import diff
from tests.model.program_translation import exact, stored
from tests.model.row_shapes import Entity, Row
from tests.model.versioned_graph import Versions


class Compared:
    """A graph on a disk beside its model."""

    model: Versions
    order: list[str]
    rows: dict[Any, dict[Entity, Row]]
    gone: set[str]  # commits whose state a cleanup may have taken

    def __init__(self, root: Path) -> None:
        self.root = root
        self.main = self.opened()
        self.handles: dict[Any, Handle] = {}
        self.known: set[str] = set()  # branches whose handle is of this branch, not of another

    def opened(self) -> Handle:
        return omnigraph.open(self.root, durability="os")

    def handle(self, branch: str) -> Handle:
        """A handle on a branch, at its newest state; the first one stays until all are reopened."""
        if branch == "main":
            return self.main.refresh()
        key = (branch, id(self.main))
        if key not in self.handles or branch not in self.known:
            self.handles[key] = self.main.checkout(branch)
            self.known.add(branch)
        return self.handles[key].refresh()

    def _reopen(self) -> None:
        self.main.close()
        self.main = self.opened()

    def retained(self, keep: int) -> set[str]:
        """The newest commits of every branch, and what any two of them stand on together."""
        model, found = self.model, set()
        for head in model.heads.values():
            at: str | None = head
            for _ in range(keep):
                found |= {at} if at is not None else set()
                at = next(iter(model.commits[at].parents), None) if at is not None else None
        every = [model.ancestors(head) for head in model.heads.values()]
        for one in every:
            for other in every:
                found |= set(model.bases(one, other))
        return found

    def past(self, graph: Handle, commit: str) -> None:
        """A commit shows what it showed; after a cleanup it may be gone, unless it is kept."""
        try:
            shown = self.shown(graph.at(commit))
        except HistoryReclaimed:
            assert commit in self.gone
        else:
            assert shown == exact(self.model.commits[commit].graph)

    def agree(self, branch: str) -> Handle:
        """A branch shows the graph and the history of the model."""
        graph = self.handle(branch)
        assert graph.head.id == self.model.heads[branch]
        wanted = self.model.graph(branch)
        assert self.shown(graph) == exact(wanted), branch
        found = {one.id: one.parents for one in graph.log()}
        known = self.model.ancestors(self.model.heads[branch])
        assert found == {one: self.model.commits[one].parents for one in known}
        return graph

    def shown(self, graph: Handle) -> dict[Entity, Any]:
        """Every entity; a table version that was read before is not read again."""
        every: dict[Entity, Row] = {}
        for key, entry in graph.snapshot.tables.items():
            place = (entry.location, entry.lance_version)
            if place not in self.rows:
                self.rows[place] = stored(graph, key)
            assert entry.row_count == len(self.rows[place])
            every |= self.rows[place]
        return exact(every)

    def shadow(self) -> None:
        """The quick way to tell the changes of a table says what all rows say."""
        shown = [self.main.at(self.model.heads[one]).snapshot for one in sorted(self.model.heads)]
        for one in self.order[::3]:
            with suppress(HistoryReclaimed, SnapshotNotFound):
                shown.append(self.main.at(one).snapshot)
        for old in shown:
            for new in shown:
                for key in diff.changed_table_keys(old, new):
                    with suppress(HistoryReclaimed, ChangeSchemaBoundary):
                        slow = diff.diff_table(old, new, key, compare_all_rows=True)
                        quick = diff.diff_table(old, new, key)
                        assert list(quick.records()) == list(slow.records())

    def finish(self, *, whole: bool) -> None:
        """Everything is readable for somebody who knows nothing."""
        self._reopen()
        if whole:
            self.rows.clear()
        assert sorted(self.main.branches) == sorted(self.model.heads)
        seen: set[str] = set()
        for branch, head in self.model.heads.items():
            graph = self.agree(branch)
            for commit in self.model.ancestors(head) - seen if whole else ():
                self.past(graph, commit)
                seen.add(commit)
        self.main.close()
