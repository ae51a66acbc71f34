"""The part of a graph handle that looks whether it is well: `check`, `status`, `repair`.

Each call is one run below. Only a repair that was asked for twice writes anything.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.events import operation
from omnigraph.writing import Writing

if TYPE_CHECKING:
    from omnigraph.health.finding import Checkup
    from omnigraph.health.repair import Repair
    from omnigraph.health.status import Status


class Inspecting(Writing):
    """Everything about the health of a graph."""

    def check(
        self,
        *,
        quick: bool = False,
        sample: float | None = None,
        engine: Literal["auto", "spark", "local"] = "auto",
        spark: Any = None,
        progress: Callable[[str], object] | None = None,
    ) -> "Checkup":
        """Look whether everything is as it should be, on every branch and tag.

        Names, manifests, logs, the files of every version that is kept, rules of the schema,
        indexes, and what other programs did to tables. The answer is true when nothing is wrong;
        it lists all findings, and the newest commit of each branch that can be read. `quick` leaves
        out rows, indexes and the insides of files. `sample` is a quick check that also compares the
        content of this share of the files, such as 0.1, with their checksums. Writes nothing.

        `engine` says who compares files: "local", "spark", on the session `spark` or on one of its
        own, or "auto": Spark from 32 GiB of files on, where it can be had.
        """
        from omnigraph.health.check import check_graph, executor_for

        self._open()
        executor = executor_for(self._store, engine, spark)
        return check_graph(
            self._store, quick=quick, sample=sample, progress=progress, executor=executor
        )

    def status(self) -> "Status":
        """What the graph consists of: fragments, versions, bytes, rows that no index covers.

        `warnings` name what is beyond its limit, with the command that helps. Reads no rows.
        """
        from omnigraph.health.status import read_status

        self._open()
        return read_status(self._store, self.branch_name, self._line.refresh())

    def repair(self, *, confirm: bool = False, force: bool = False) -> "Repair":
        """Tell what other programs committed to the tables of the graph, and what is damaged.

        What they did is in no branch. With `force` and `confirm` rows that they appended are taken
        over by an ordinary commit, if they obey all rules of the schema. Everything else is
        refused; nothing is ever adopted silently.
        """
        from omnigraph.health.repair import repair_graph

        self._open()
        if confirm:
            self._writable("a repair")
        with operation("repair", self.branch_name) as event:
            done = repair_graph(self._store, self._line, confirm=confirm, force=force)
            event.rows_told("table_repaired", (one.to_json() for one in done.datasets))
            event.facts["drift_tables"] = sum(one.action != "no_op" for one in done.datasets)
        if done.commit_id is not None:
            self.refresh()
        return done
