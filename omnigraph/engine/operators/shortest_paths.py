"""Find the edges of the paths with the fewest edges, layer by layer, using breadth-first search from all start nodes.

A shortest path from a node to itself has no edges.
"""

from .path_layers import BYTES_PER_EDGE, EdgeLayer, PathLayers
from .path_search import PathSearch, PlaceLevels, WantedEnds
from .rows import IntArray


def search_from_starts(search: PathSearch, starts: IntArray, wanted: WantedEnds) -> PathLayers:
    """Return the edges on the shortest paths from the given starts to all allowed ends, grouped by layer."""
    levels = search.levels(search.place_count(starts))
    frontier = levels.add_level(starts)
    layers: list[EdgeLayer] = []
    while len(frontier) and len(layers) < search.max_hops and not _has_all(levels, wanted):
        followed = search.follow(frontier)
        layer = followed.take(levels.of(followed.targets) < 0)
        search.context.meter.release_bytes((len(followed.edges) - len(layer.edges)) * BYTES_PER_EDGE)
        frontier = levels.add_level(layer.targets)
        layers.append(layer)
    ends = [places[wanted.contains(places, search.stride)] for places in levels.known_places]
    return PathLayers(starts, layers, search.within_bounds(ends))


def _has_all(levels: PlaceLevels, wanted: WantedEnds) -> bool:
    return wanted.places is not None and bool((levels.of(wanted.places) >= 0).all())
