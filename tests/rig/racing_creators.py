"""Creators that race for one name, as functions for other processes."""

import threading
from typing import Any

from omnigraph.storage.effects import Effects
from omnigraph.storage.objects import open_objects
from omnigraph.storage.root import parse_root
from tests.rig.timeouts import PATIENCE


def create_all(url: str, who: str, names: list[str], start_at: Any, won: Any) -> None:
    """Try to create every name, in step with the other creators; tell which were won."""
    objects = open_objects(parse_root(url), Effects(), durable=False)
    for name in names:
        start_at.wait()
        if objects.create_json(name, {"who": who}):
            won.put((name, who))


def race_threads(url: str, count: int, names: list[str]) -> list[tuple[str, str]]:
    """Who won which name, of `count` threads."""
    import queue

    won: queue.Queue[tuple[str, str]] = queue.Queue()
    barrier = threading.Barrier(count, timeout=PATIENCE)
    threads = [threading.Thread(target=create_all, args=(url, f"t{n}", names, barrier, won)) for n in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sorted(won.queue)


def race_processes(url: str, count: int, names: list[str]) -> list[tuple[str, str]]:
    """Who won which name, of `count` new processes."""
    import multiprocessing

    spawn = multiprocessing.get_context("spawn")
    barrier, won = spawn.Barrier(count, timeout=PATIENCE), spawn.Queue()
    processes = [spawn.Process(target=create_all, args=(url, f"p{n}", names, barrier, won)) for n in range(count)]
    for one in processes:
        one.start()
    # One winner for each name; a second one would have told before its process ended.
    found = [won.get(timeout=PATIENCE) for _ in names]
    for one in processes:
        one.join()
    while not won.empty():
        found.append(won.get())
    won.close()
    won.join_thread()
    failed = [one.exitcode for one in processes if one.exitcode]
    if failed:
        raise RuntimeError(f"creators failed: {failed}")
    return sorted(found)
