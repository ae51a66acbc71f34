"""The values of a plan that read paths, and the modes in which paths are found.

This module contains only records; the operator that finds paths is in `plan`.
"""

from typing import Literal as OneOf

from omnigraph.records.frozen import record
from omnigraph.values import PropertyType

PathMode = OneOf["any shortest", "all shortest", "walk", "trail", "acyclic", "simple"]
PathFunction = OneOf["length", "nodes", "edges", "cost"]


@record
class PathEntity:
    """A bound path, which is projected as an object with its nodes and edges."""

    variable: str
    type_name: str
    has_cost: bool = False


@record
class PathValue:
    """A property of a bound path: its number of edges, the ids of its nodes or edges, or its cost."""

    variable: str
    function: PathFunction
    type: PropertyType
