"""Expands the interfaces that a node implements.

Owns the expansion of `implements`. The order of the list never changes the result: two interfaces
that declare the same property must agree in everything.
"""

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.lang.schema import catalog, model
from omnigraph.lang.schema.names import did_you_mean

from .draft import Draft, Site
from .findings import Findings, Stage

_Interfaces = Mapping[str, Draft]


def expand(
    node: Draft,
    implements: tuple[model.Name, ...],
    interfaces: _Interfaces,
    broken: frozenset[tuple[str, str]],
    findings: Findings,
) -> Draft:
    """Return the node draft with the properties of its interfaces added."""
    sites = dict(node.sites)
    complete = True
    for name in dict.fromkeys(implements):
        interface = interfaces.get(name.text)
        if interface is not None:
            _join(node, interface, sites, findings)
            continue
        complete = False
        if ("interface", name.text) not in broken:
            message = f"{node.label} implements the unknown interface `{name.text}`"
            hint = did_you_mean(name.text, interfaces, _known(interfaces))
            findings.add(Stage.INTERFACE, name.span, message, hint)
    return replace(node, sites=sites, complete=complete)


def _known(interfaces: _Interfaces) -> str:
    if not interfaces:
        return "this schema declares no interface"
    return f"known interfaces: {', '.join(sorted(interfaces))}"


def _join(node: Draft, interface: Draft, sites: dict[str, Site], findings: Findings) -> None:
    for name, offered in interface.sites.items():
        pair = (interface.name.text, name)
        held = sites.get(name)
        if held is None:
            made = replace(offered.made, declared_directly=False, satisfies=(pair,))
            sites[name] = replace(offered, made=made)
            continue
        if held.readable and offered.readable:
            _compare(node, interface, held, offered, findings)
        satisfies = tuple(sorted({*held.made.satisfies, pair}))
        sites[name] = replace(held, made=replace(held.made, satisfies=satisfies))


def _compare(node: Draft, interface: Draft, held: Site, offered: Site, findings: Findings) -> None:
    name, own, other = held.made.name, held.made.type.display(), offered.made.type.display()
    if held.made.type != offered.made.type:
        origin = _origin(held)
        message = (
            f"{node.label}: property `{name}` is {own}{origin}, "
            f"but interface `{interface.name.text}` declares it as {other}"
        )
        span = held.written.type_span if held.made.declared_directly else node.name.span
        findings.add(Stage.INTERFACE, span, message)
    elif not held.made.declared_directly and _meaning(held) != _meaning(offered):
        message = (
            f"{node.label}: property `{name}` differs between the interfaces "
            f"`{held.made.satisfies[0][0]}` and `{interface.name.text}`"
        )
        hint = f"give both the same annotations, or declare `{name}` in the node"
        findings.add(Stage.SHAPE, node.name.span, message, hint)


def _origin(held: Site) -> str:
    if held.made.declared_directly:
        return ""
    return f" in interface `{held.made.satisfies[0][0]}`"


def _meaning(site: Site) -> catalog.Property:
    """Return the definition without its origin and with sorted annotations, for comparison."""
    notes = tuple(sorted(site.made.notes, key=repr))
    return replace(site.made, notes=notes, declared_directly=True, satisfies=())
