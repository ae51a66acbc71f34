"""Random interleavings of handles and transactions on one graph, compared with the model of row conflicts."""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from omnigraph import Graph
from omnigraph.errors import EntityNotFound, ReadSetConflict, VersionConflict
from tests.model.row_conflicts import COLUMNS, Condition, Query, Statement, Touch, World, touches

NAMES = [f"i{number}" for number in range(8)]
TEAMS = ["red", "blue"]


@dataclass
class Client:
    """A handle, what it has seen, and what others did since it read."""

    graph: Graph
    view: World
    unseen: list[Touch] = field(default_factory=list)


@dataclass
class Interleaving:
    """One run: clients act in random order, and each outcome is compared with the model."""

    dice: Random
    world: World
    clients: list[Client]
    outcomes: Counter[str] = field(default_factory=Counter)
    forms: Random = field(default_factory=lambda: Random(7))

    def step(self) -> None:
        """One client does one thing."""
        client = self.dice.choice(self.clients)
        action = self.dice.choice(["read", "replace", "link", *["strict"] * 5, *["transaction"] * 2])
        getattr(self, f"_{action}")(client)

    # Plain steps --------------------------------------------------------------------------------

    def _read(self, client: Client) -> None:
        client.graph.refresh()
        client.view, client.unseen = deepcopy(self.world), []

    def _replace(self, client: Client) -> None:
        """A load replaces whole items, whatever its handle has seen."""
        name = self.dice.choice(NAMES)
        item = {"team": self.dice.choice([*TEAMS, None]), "score": self._number(), "note": self._number()}
        client.graph.load({"Item": [{"name": name, **item}]}, mode="merge")
        before = deepcopy(self.world)
        for world in (self.world, client.view):
            world.items[name] = dict(item)
        self._tell_others(client, before)

    def _link(self, client: Client) -> None:
        if not self.world.items:
            return
        link = (self.dice.choice(sorted(self.world.items)), self.dice.choice(sorted(self.world.items)))
        if link in self.world.links:
            return
        client.graph.connect_nodes("Link", [link])
        before = deepcopy(self.world)
        for world in (self.world, client.view):
            world.links.add(link)
        self._tell_others(client, before)

    def _strict(self, client: Client) -> None:
        statement = self.statement()
        must = statement.must_conflict(client.view, self.world)
        try:
            affected = self._run(client.graph, statement)
        except EntityNotFound:
            assert not must
            assert statement.lacks_item(self.world)
            self.outcomes["not found"] += 1
            return
        except VersionConflict as conflict:
            self._judge_conflict(client, statement, conflict)
            return
        assert not must, f"{statement} overwrote what its handle had not seen"
        before = deepcopy(self.world)
        assert affected == statement.apply(self.world)
        statement.apply(client.view)
        self.outcomes["landed beside unseen changes" if client.unseen else "landed"] += 1
        self._tell_others(client, before)

    def _judge_conflict(self, client: Client, statement: Statement, conflict: VersionConflict) -> None:
        is_delete = statement.column is None
        concerning = [t for t in client.unseen if t.concerns([statement.where], statement.columns, links=is_delete)]
        assert concerning, f"{statement} conflicted without a reason: {conflict}"
        self.outcomes["conflict"] += 1
        if self.dice.random() < 0.5:
            self._read(client)
            if statement.lacks_item(self.world):
                return
            before = deepcopy(self.world)
            assert self._run(client.graph, statement) == statement.apply(self.world)
            statement.apply(client.view)
            self._tell_others(client, before)

    # Transactions -------------------------------------------------------------------------------

    def _transaction(self, client: Client) -> None:
        start, began = deepcopy(self.world), len(self.clients)
        reads: list[tuple[int, Query, Any]] = []
        statements: list[Statement] = []
        observer = Client(client.graph, start)
        self.clients.append(observer)
        mine, marker_score = deepcopy(start), self._number()
        try:
            with client.graph.transaction() as tx:
                for _ in range(self.dice.choice([1, 2, 3])):
                    if self.dice.random() < 0.6:
                        query = self.query()
                        answer = query.shown(tx.query(query.text).to_dicts())
                        assert answer == query.answer(mine), query
                        reads.append((len(statements), query, answer))
                    else:
                        statement = self.statement()
                        is_absent = statement.lacks_item(mine)
                        statements.append(replace(statement, verb="upsert") if is_absent else statement)
                        self._run(tx, statements[-1])
                        statements[-1].apply(mine)
                    if self.dice.random() < 0.5:
                        self._rival(client)
                tx.load({"Item": [{"name": "marker", "score": marker_score}]}, mode="merge")
        except ReadSetConflict as conflict:
            self._judge_transaction(observer, reads, statements, conflict)
            return
        finally:
            del self.clients[began:]
        before = deepcopy(self.world)
        self._replay(reads, statements)
        self.world.items["marker"] = {"team": None, "score": marker_score, "note": None}
        self._tell_others(client, before)
        self.outcomes["transaction landed beside changes" if observer.unseen else "transaction landed"] += 1
        self._read(client)

    def _rival(self, client: Client) -> None:
        rivals = [other for other in self.clients[: len(self.clients) - 1] if other is not client]
        rival = self.dice.choice(rivals)
        self.dice.choice([self._strict, self._replace, self._link])(rival)

    def _replay(self, reads: list[tuple[int, Query, Any]], statements: list[Statement]) -> None:
        """The transaction on the graph that it was applied to: it must read what it read."""
        for position in range(len(statements) + 1):
            for when, query, answer in reads:
                if when == position:
                    assert query.answer(self.world) == answer, f"{query} read something else when it landed"
            if position < len(statements):
                statements[position].apply(self.world)

    def _judge_transaction(
        self,
        observer: Client,
        reads: list[tuple[int, Query, Any]],
        statements: list[Statement],
        conflict: ReadSetConflict,
    ) -> None:
        queries = [query for _, query, _ in reads]
        conditions = [*(query.where for query in queries), *(statement.where for statement in statements)]
        columns = set().union(*(query.columns for query in queries), *(one.columns for one in statements))
        traverses = any(query.kind == "links" for query in queries)
        deletes = any(statement.column is None for statement in statements)
        if traverses:
            conditions, columns = [None], set(COLUMNS)
        assert any(t.concerns(conditions, columns, links=traverses or deletes) for t in observer.unseen), conflict
        self.outcomes["transaction conflict"] += 1

    # Choices ------------------------------------------------------------------------------------

    def _run(self, target: Any, statement: Statement) -> int:
        if statement.verb != "update":
            receipt = getattr(target, statement.verb)(
                "Item", {"name": statement.where.value, statement.column: statement.value}
            )
        elif isinstance(target, Graph) and statement.where.column == "name" and self.forms.random() < 0.6:
            return self._run_as_load(target, statement)
        elif isinstance(target, Graph) and self.forms.random() < 0.5:
            receipt = self._run_as_match(target, statement)
        elif statement.column is None:
            receipt = target.delete("Item", where=statement.where.text)
        else:
            receipt = target.update("Item", where=statement.where.text, set={statement.column: statement.value})
        return 0 if receipt is None else int(receipt.nodes.get("Item", 0))

    def _run_as_match(self, graph: Graph, statement: Statement) -> Any:
        """Run a statement whose rows a match finds; in a transaction, a match depends on whole types."""
        self.outcomes["match"] += 1
        found = f"match {{ $p: Item  {statement.where.expression} }}"
        if statement.column is None:
            return graph.mutate(f"{found} delete $p")
        return graph.mutate(f"{found} update $p set {{ {statement.column}: $value }}", value=statement.value)

    def _run_as_load(self, graph: Graph, statement: Statement) -> int:
        """Run a statement about one item as a load by delete or patch; the latter rejects a missing item."""
        name = {self.forms.choice(["name", "id"]): statement.where.value}
        self.outcomes["load"] += 1
        if statement.column is None:
            receipt: Any = graph.load({"Item": [name]}, mode="delete")
            return int(receipt.nodes.get("Item", 0))
        try:
            receipt = graph.load({"Item": [{**name, statement.column: statement.value}]}, mode="patch")
        except EntityNotFound:
            return 0
        return int(receipt.nodes["Item"])

    def condition(self) -> Condition:
        return self.dice.choice(
            [
                Condition("name", "=", self.dice.choice(NAMES)),
                Condition("name", "=", self.dice.choice(NAMES)),
                Condition("team", "=", self.dice.choice(TEAMS)),
                Condition("score", "<", self._number()),
            ]
        )

    def statement(self) -> Statement:
        if self.dice.random() < 0.15:
            return Statement(self.condition())
        column = self.dice.choice(COLUMNS)
        value = self.dice.choice(TEAMS) if column == "team" else self._number()
        verb = self.dice.choice(["update", "update", "upsert", "patch"])
        where = self.condition() if verb == "update" else Condition("name", "=", self.dice.choice(NAMES))
        return Statement(where, column, value, verb)

    def query(self) -> Query:
        kind = self.dice.choice(["score", "names", "total", "whole", "links"])
        return Query(kind, self.dice.choice([None, self.condition(), self.condition(), self.condition()]))

    def _number(self) -> int:
        return self.dice.randrange(6)

    def _tell_others(self, author: Client, before: World) -> None:
        news = touches(before, self.world)
        for client in self.clients:
            if client is not author:
                client.unseen += news
