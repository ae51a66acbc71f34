"""The part of a graph handle that looks whether it is well: `check`, `status`, `repair`.

Also what to do with operations that recovery set aside. Each call is one run below. Only a repair
that was asked for twice, a retry and a drop write anything.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.events import operation
from omnigraph.writing import Writing

if TYPE_CHECKING:
    from omnigraph.health.finding import Checkup
    from omnigraph.health.repair_report import Repair
    from omnigraph.health.status import Status
    from omnigraph.history.audit import Outcome
    from omnigraph.history.intent import SetAside


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

    def repair(  # noqa: PLR0913 - all are named
        self,
        *,
        confirm: bool = False,
        force: bool = False,
        restore: str | None = None,
        name: str | None = None,
        tag: bool = False,
        drop: str | None = None,
        commit: str | None = None,
    ) -> "Repair":
        """Tell what other programs committed to the tables of the graph, and what is damaged.

        What they did is in no branch. With `force` and `confirm` rows that they appended are taken
        over by an ordinary commit, if they obey all rules of the schema. Everything else is
        refused; nothing is ever adopted silently.

        With `confirm`, branches and tags whose ref objects are lost or damaged get their names
        back. `restore` is the ULID of one whose name is not known, or is taken: it becomes the
        branch `name`, or with `tag` the tag. `drop` is the ULID of one to delete instead, or a name
        that leads to nothing. `restore` and `drop` leave all others alone. Newest versions of
        manifests that were published and are missing are published again, where that is proved;
        `commit` is one of which you know that it was acknowledged.
        """
        from omnigraph.health.repair import repair_graph
        from omnigraph.health.restore_names import NameChoice

        self._open()
        if confirm:
            self._writable("a repair")
        with operation("repair", self.branch_name) as event:
            choice = NameChoice(restore, name, tag, drop)
            done = repair_graph(
                self._store,
                self._line,
                confirm=confirm,
                force=force,
                choice=choice,
                accept=commit,
            )
            event.rows_told("table_repaired", (one.to_json() for one in done.datasets))
            event.rows_told("name_repaired", (one.to_json() for one in done.names))
            event.rows_told("version_repaired", (one.to_json() for one in done.versions))
            event.facts["drift_tables"] = sum(one.action != "no_op" for one in done.datasets)
        if done.commit_id is not None or (confirm and done.versions):
            self.refresh()
        return done

    def set_aside(self) -> "list[SetAside]":
        """Unfinished operations that recovery could not settle, oldest first, each with its error.

        They keep nobody from reading or writing, and what they need stays until they are dropped.
        """
        from omnigraph.history.set_aside import list_set_aside

        self._open()
        return list_set_aside(self._store)

    def retry_operation(self, operation_id: str) -> "Outcome | None":
        """Settle an operation that was set aside, now that the cause is mended.

        Returns what became of it, None when it was over already. Raises what still keeps it from
        being settled; then it stays set aside.
        """
        from omnigraph.history.set_aside import retry_operation

        self._open()
        self._writable("retrying an operation")
        with operation("recovery_retry", self.branch_name) as event:
            event.facts["operation_id"] = operation_id
            outcome = retry_operation(self._store, operation_id)
        self.refresh()
        return outcome

    def drop_operation(self, operation_id: str) -> "Outcome":
        """Give up an operation that was set aside; its record goes, and what it staged may go.

        The drop is recorded; `recoveries` lists it.
        """
        from omnigraph.history.set_aside import drop_operation

        self._open()
        self._writable("dropping an operation")
        with operation("recovery_drop", self.branch_name) as event:
            event.facts["operation_id"] = operation_id
            return drop_operation(self._store, operation_id, self.actor)
