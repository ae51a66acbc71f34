"""Damage to the files of a root: every kind of file and damage, and the outcome.

`python -m tests.maintenance.file_damage MADE WORK < trials` runs trials in a process of its own, one JSON
line each: a damaged file must not be able to end the test process.
"""

import json
import os
import random
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import BranchNotFound, OmnigraphError
from omnigraph.history import commit_log, file_checksums
from omnigraph.maintenance import check
from omnigraph.publish import intent, intent_outcomes
from omnigraph.publish.intent import Intent
from omnigraph.values import clock_and_ids

SCHEMA = """
node Doc {
  name: String @key
  code: String? @index(code, kind=ngram)
  body: String? @index(body, kind=fulltext)
  place: Vector(2)? @index
  age: I32? @index
  raw: Blob?
}
edge Cites: Doc -> Doc { weight: F64? }
"""
KINDS = {
    "data": r"(nodes|edges)/[^/]+/data/[^/]+\.lance",
    "blob": r"(nodes|edges)/[^/]+/data/[^/]+/.+\.blob",
    "deletion": r"(nodes|edges)/[^/]+/_deletions/.+",
    "index": r"(nodes|edges)/[^/]+/_indices/.+",
    "version": r"(nodes|edges)/[^/]+/_versions/.+",
    "transaction": r".+/_transactions/.+",
    "state": r"(__manifest|__branches/[^/]+)/data/.+",
    "manifest": r"(__manifest|__branches/[^/]+)/_versions/.+",
    "chunk": r"_commits/.+",
    "checksums": r"_checksums/.+",
    "schema": r"_schemas/.+",
    "ref": r"_refs/branches/.+",
    "tag": r"_refs/tags/.+",
    "intent": r"__recovery/.+\.json",
    "audit": r"_audit/.+",
}
QUESTIONS = (
    "match { $d: Doc } return { $d.name, $d.code, $d.body, $d.place, $d.age } order { $d.name }",
    "match { $d: Doc  $d cites $e } return { $d.name, $e.name } order { $d.name, $e.name }",
    'match { $d: Doc  $d.code contains "ber 12" } return { $d.name } order { $d.name }',
    "match { $d: Doc  $d.age = 7 } return { $d.name } order { $d.name }",
    'match { $d: Doc  search($d.body, "hello") } return { count($d) }',
    "match { $d: Doc } return { $d.name } order { nearest($d.place, [3.0, 1.0]) } limit 2",
)


def row(number: int) -> dict[str, Any]:
    """One document; its blob is large enough for a file of its own only now and then."""
    return {
        "name": f"n{number:03}",
        "code": f"text number {number}",
        "body": f"hello number {number}",
        "place": [float(number), 1.0],
        "age": number % 50,
        "raw": bytes([number % 251]) * (100_000 if number % 40 == 0 else 10),
    }


def build_graph(root: Path) -> None:
    """A graph that has every kind of file; small limits let it stay small."""
    old = commit_log.CHUNK_COMMITS, file_checksums.MAX_INLINE_FILES
    try:
        commit_log.CHUNK_COMMITS = 3
        graph = omnigraph.init(root, SCHEMA, durability="os")
        file_checksums.MAX_INLINE_FILES = 1
        for start in (0, 60):
            rows = [row(number) for number in range(start, start + 60)]
            graph.load({"Doc": rows}, mode="append")
        file_checksums.MAX_INLINE_FILES = old[1]
        _change_graph(graph)
    finally:
        commit_log.CHUNK_COMMITS, file_checksums.MAX_INLINE_FILES = old


def _change_graph(graph: Graph) -> None:
    graph.maintenance.ensure_indices()
    pairs = [{"from": f"n{n:03}", "to": f"n{n + 1:03}", "weight": n / 7} for n in range(60)]
    graph.load({"Cites": pairs}, mode="append")
    graph.tag("early")
    graph.branches.create("side").load({"Doc": [row(200)]}, mode="append")
    graph.branches.create("other")
    graph.branches.create("spare")
    graph.branches.delete("spare", force=True)
    graph.schema.apply(SCHEMA.replace("age: I32? @index", "age: I32? @index  extra: String?"))
    for number in range(5):
        graph.update("Doc", where=f'name = "n{number:03}"', set={"age": 70 + number})
    graph.delete("Doc", where='name = "n050"')
    graph.checkout("other").delete("Doc", where="age > 20")
    graph.tag("late")
    _write_intents(graph)


def _write_intents(graph: Graph) -> None:
    """Two operations under way, and two that were settled."""
    head = graph.head.id
    for _ in range(2):
        begun = Intent(clock_and_ids.new_ulid(), "load", "main", "main", head, 1, clock_and_ids.new_ulid())
        intent.arm(graph._handle.store, begun)
        intent_outcomes.record_outcome(
            graph._handle.store, Intent(clock_and_ids.new_ulid(), "load", "main", "main", head, 1), "seen"
        )


def read_answers(root: Path) -> dict[str, Any]:
    """What branches, a tag and a past commit show: rows and blobs, and answers of indexes."""
    graph = omnigraph.open(root, read_only=True)
    answers: dict[str, Any] = {"main": [graph.query(one).to_lists() for one in QUESTIONS]}
    for label, view in _views(root):
        exported = view().export()
        assert not isinstance(exported, int)
        answers[label] = sorted(b"".join(exported).decode().splitlines())
    answers["branches"] = sorted(one for one in graph.branches if _opens(root, one))
    answers["tags"] = [one.name for one in graph.tags.values()]
    answers["log"] = [one.id for one in graph.log(all=True)]
    # Records of what was settled: they decide nothing, and one may be lost.
    graph.maintenance.operations.recoveries()
    return answers


def _opens(root: Path, branch: str) -> bool:
    """Whether a name leads to a branch: that of a deletion that was cut off does not."""
    try:
        omnigraph.open(root, branch=branch, read_only=True)
    except BranchNotFound:
        return False
    return True


def _views(root: Path) -> Iterator[tuple[str, Callable[[], Graph]]]:
    def opened() -> Graph:
        return omnigraph.open(root, read_only=True)

    yield "main export", opened
    yield "side", lambda: opened().checkout("side")
    yield "other", lambda: opened().checkout("other")
    yield "early", lambda: opened().at("early")
    yield "past", lambda: opened().at("HEAD~3")


def files_of_kind(root: Path, kind: str) -> list[str]:
    """The root-relative names of the files of one kind, oldest first."""
    pattern = re.compile(KINDS[kind])
    every = (one for one in root.rglob("*") if one.is_file())
    ordered = sorted(every, key=lambda one: (one.stat().st_mtime_ns, str(one)))
    return [name for one in ordered if pattern.fullmatch(name := one.relative_to(root).as_posix())]


def delete(path: Path, others: list[Path], chance: random.Random) -> None:
    path.unlink()


def truncate(path: Path, others: list[Path], chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def zero(path: Path, others: list[Path], chance: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path, others: list[Path], chance: random.Random) -> None:
    body = bytearray(path.read_bytes())
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(body))


def swap(path: Path, others: list[Path], chance: random.Random) -> None:
    other = chance.choice(others)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


def put_back(path: Path, others: list[Path], chance: random.Random) -> None:
    """An older file of the same directory, or of the same kind, under the name of a newer one."""
    near = [one for one in others if one.parent == path.parent] or others
    path.write_bytes(chance.choice(near).read_bytes())


DAMAGES = {
    "deleted": delete,
    "truncated": truncate,
    "zeroed": zero,
    "flipped": flip,
    "swapped": swap,
    "older": put_back,
}


def run_trial(made: Path, work: Path, trial: dict[str, Any], sound: dict[str, Any]) -> str:
    """Damage one file of a copy, read everything, check; return what came of it.

    `read`: a typed error, `check`: only the check knows, `harmless`: nothing changed; what begins
    with `silent` or `untyped` is a defect.
    """
    # A place of its own: this process remembers what it read of another one.
    root = work / f"{trial['kind']}-{trial['damage']}-{trial['seed']}"
    shutil.copytree(made, root)
    chance = random.Random(trial["seed"])
    names = [one for one in files_of_kind(root, trial["kind"]) if (root / one).stat().st_size]
    name = trial.get("name") or chance.choice(names)
    others = [root / one for one in names if one != name]
    before = (root / name).read_bytes()
    DAMAGES[trial["damage"]](root / name, others, chance)
    same = (root / name).exists() and (root / name).read_bytes() == before
    outcome = "harmless" if same else _judge(root, sound)
    shutil.rmtree(root)
    return f"{outcome} [{name}]"


def _judge(root: Path, sound: dict[str, Any]) -> str:
    told = None
    try:
        answers = read_answers(root)
    except OmnigraphError as error:
        told = f"read: {type(error).__name__}"
        answers = {}
    except Exception as error:
        return f"untyped on read: {type(error).__name__}: {error}"
    try:
        graph = omnigraph.open(root, read_only=True)
        checkup = graph.maintenance.check(sample=1.0)
        if checkup and not checkup.findings and (told or answers != sound):
            checkup = graph.maintenance.check()
    except OmnigraphError as error:
        return told or f"check: {type(error).__name__}"
    except Exception as error:
        return f"untyped by check: {type(error).__name__}: {error}"
    if told is not None:
        return told if checkup.findings else f"{told}, check is clean"
    if checkup.findings:
        return "check"
    wrong = [name for name in sound if answers.get(name) != sound[name]]
    return f"silent: {wrong}" if wrong else "harmless"


def main() -> None:
    """Run the trials that are given on the standard input."""
    warnings.simplefilter("ignore")
    if os.environ.get("OMNIGRAPH_TEST_WITHOUT_CHECKSUMS"):  # a planted defect
        setattr(check, "read_checksums", lambda *_: {})  # noqa: B010 - not exported
    made, work = Path(sys.argv[1]), Path(sys.argv[2])
    sound = read_answers(made)
    for text in sys.stdin:
        trial = json.loads(text)
        print(json.dumps({**trial, "began": True}), flush=True)
        print(json.dumps({**trial, "outcome": run_trial(made, work, trial, sound)}), flush=True)


if __name__ == "__main__":
    main()
