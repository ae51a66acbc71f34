"""Enumerate all paths from the given starts: walks, trails, acyclic paths and simple paths.

All paths are extended together, one edge at a time. If the ends are known, paths that cannot reach an end within the
bounds are dropped early.
"""

import numpy as np

from omnigraph.engine.adjacency.neighbor_lists import expand_ranges
from omnigraph.lang.query import plan_paths

from .path_layers import EdgeLayer, append_edges
from .path_search import PathSearch, PlaceLevels, WantedEnds
from .path_table import PathBlock, start_block
from .rows import IntArray, Mask

_BYTES_PER_MEMBER = 24  # bytes per node on a path, including its edge and edge type


def enumerate_paths(
    search: PathSearch, mode: plan_paths.PathMode, starts: IntArray, wanted: WantedEnds
) -> list[PathBlock]:
    """Return all paths that the mode permits from the given starts to the allowed ends, grouped by length."""
    hops_to_end = _hops_to_ends(search, starts, wanted)
    paths = start_block(starts)
    blocks = [_ending_paths(search, paths, wanted)]
    for length in range(1, search.max_hops + 1):
        paths = _open_paths(paths) if mode == "simple" else paths
        paths = _extend_paths(search, mode, paths)
        if hops_to_end is not None:
            last_places = paths.nodes[:, -1]
            hops = hops_to_end.of(last_places if wanted.places is not None else last_places % search.stride)
            paths = paths.take((hops >= 0) & (hops <= search.max_hops - length))
        if len(paths.nodes) == 0:
            break
        blocks.append(_ending_paths(search, paths, wanted))
    return blocks


def _ending_paths(search: PathSearch, paths: PathBlock, wanted: WantedEnds) -> PathBlock:
    if paths.edges.shape[1] < search.min_hops:
        return paths.take(np.empty(0, np.int64))
    return paths.take(wanted.contains(paths.nodes[:, -1], search.stride))


def _hops_to_ends(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> PlaceLevels | None:
    """Return distances to the nearest allowed end, or None if all ends are allowed.

    There is one distance per (start, node) pair or, if the allowed ends are given as nodes, per node.
    """
    ends = wanted.places if wanted.places is not None else wanted.nodes
    if ends is None:
        return None
    levels = search.levels(search.place_count(starts))
    frontier = levels.add_level(ends)
    while len(frontier) and len(levels.known_places) < search.max_hops:
        frontier = levels.add_level(search.follow(frontier, backward=True).targets)
    return levels


def _open_paths(paths: PathBlock) -> PathBlock:
    """Return the paths that can be extended because they have not returned to their first node."""
    is_open: Mask = paths.nodes[:, 0] != paths.nodes[:, -1]
    return paths.take(is_open) if paths.edges.shape[1] else paths


def _extend_paths(search: PathSearch, mode: plan_paths.PathMode, paths: PathBlock) -> PathBlock:
    last_places, path_positions = np.unique(paths.nodes[:, -1], return_inverse=True)
    layer = search.follow(last_places)
    layer = layer.take(np.argsort(layer.sources, kind="stable"))
    first = np.searchsorted(layer.sources, last_places, side="left")[path_positions]
    counts = np.searchsorted(layer.sources, last_places, side="right")[path_positions] - first
    search.context.meter.charge_bytes(int(counts.sum()) * (paths.nodes.shape[1] + 1) * _BYTES_PER_MEMBER)
    positions = np.repeat(np.arange(len(counts)), counts)
    layer = layer.take(expand_ranges(first, counts))
    is_allowed = ~_repeats(mode, paths, positions, layer)
    return append_edges(paths, positions[is_allowed], layer.take(is_allowed))


def _repeats(mode: plan_paths.PathMode, paths: PathBlock, positions: IntArray, layer: EdgeLayer) -> Mask:
    """Return whether each edge would repeat a node or edge that the mode allows only once."""
    is_repeated = np.zeros(len(positions), np.bool_)
    if mode == "trail":
        for column in range(paths.edges.shape[1]):
            is_same_edge = paths.edges[positions, column] == layer.edges
            is_repeated |= is_same_edge & (paths.edge_types[positions, column] == layer.edge_types)
    elif mode in ("acyclic", "simple"):
        for column in range(int(mode == "simple"), paths.nodes.shape[1]):
            is_repeated |= paths.nodes[positions, column] == layer.targets
    return is_repeated
