"""The part of a graph handle that changes the schema: plan, look, apply.

Every call here ends in one publish below, or in no effect.
"""

from os import PathLike
from pathlib import Path

from omnigraph.diagnostics import Source
from omnigraph.errors import InputError, UsageError
from omnigraph.events import operation
from omnigraph.evolve.apply import apply_plan, check_plan
from omnigraph.evolve.proposal import SchemaApplied, SchemaPlan, propose
from omnigraph.handle import on_branch
from omnigraph.terms import Attempts, Terms
from omnigraph.writing import Writing

SchemaText = str | PathLike[str] | Source


class Shaping(Writing):
    """Everything that changes what a graph can hold."""

    def plan_schema(
        self, new: SchemaText, *, allow_data_loss: bool = False, branch: str | None = None
    ) -> SchemaPlan:
        """What it takes to give the branch another schema; reads no data, changes nothing.

        `new` is `.pg` text, or a path to it. `allow_data_loss` plans drops that take the history
        of what is dropped along. Raises the errors of the language and `IdentityError`.
        """
        there = self._there(branch)
        shown = there._newest()
        text, name = schema_text(new)
        return propose(shown.schema_row, shown.schema, text, name, allow_data_loss=allow_data_loss)

    def apply_schema(  # noqa: PLR0913 - all but the first are named
        self,
        new: SchemaText | SchemaPlan,
        *,
        allow_data_loss: bool = False,
        branch: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> SchemaApplied:
        """Give the branch another schema, as one commit; other branches keep theirs.

        `new` is `.pg` text, a path, or a plan, which is applied only to the schema that it was made
        for. Steps that may fail on data are checked against it first. What is dropped stays
        readable in earlier commits, unless `allow_data_loss` is given: then its history goes, too.
        `dry_run` only checks.

        Raises `SchemaUnsupported`, `SchemaViolation`, `ReadSetConflict`, `VersionConflict`,
        `PreconditionFailed`, `ReadOnlyError`, and the errors of the language.
        """
        there = self._there(branch)
        there._check_target("a change of the schema")
        if not dry_run:
            there._writable("a change of the schema")
        plan = new if isinstance(new, SchemaPlan) else there.plan_schema(new)
        plan = plan.losing(allow_data_loss or plan.allow_data_loss)
        terms = there._signed(Terms(if_commit, message, actor))
        return there._apply_schema(plan, terms, dry_run)

    def _apply_schema(self, plan: SchemaPlan, terms: Terms, dry_run: bool) -> SchemaApplied:
        here, commit = self.branch_name, None
        with operation("apply_schema", here) as event, on_branch(here):
            if dry_run:
                check_plan(self._line, plan)
            else:
                watch = self._watch(())
                conditions = terms.conditions(watch, Attempts())
                made = apply_plan(self._line, plan, terms.signature(), conditions)
                commit = self._wrote(made, watch)
        return SchemaApplied(plan, commit, here, event.seconds(), dry_run)


def schema_text(schema: SchemaText) -> tuple[str, str]:
    """The text of a schema and its name; a lone word that ends in `.pg` is a path.

    >>> schema_text("node Lamp {}")
    ('node Lamp {}', '<schema>')
    """
    if isinstance(schema, Source):
        return schema.text, schema.name
    lone = isinstance(schema, str) and schema.endswith(".pg") and "\n" not in schema
    if isinstance(schema, str) and not lone:
        return schema, "<schema>"
    try:
        path = Path(schema)
    except TypeError as error:
        kind = type(schema).__name__
        raise UsageError(reason=f"a schema is text, a path or a plan, not {kind}") from error
    try:
        return path.read_text("utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"cannot read {path}: {why}", reason="unreadable") from error
