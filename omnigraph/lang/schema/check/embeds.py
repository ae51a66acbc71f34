"""`@embed`: checks that the source property of a vector exists."""

from omnigraph.lang.schema.names import did_you_mean
from omnigraph.values import ScalarType

from .draft import Draft, Site
from .findings import Findings, Stage


def check_embeds(node: Draft, findings: Findings) -> None:
    """Check that every `@embed` of a node names a String property of the same node."""
    for site in node.sites.values():
        if site.made.embed is not None:
            _check_source(node, site, site.made.embed.source, findings)


def _check_source(node: Draft, site: Site, name: str, findings: Findings) -> None:
    annotation = site.annotation("embed")
    span = annotation.arguments[0].span if annotation is not None else site.written.span
    source = node.sites.get(name)
    if source is None:
        if node.complete:
            message = f"`@embed` on `{site.made.name}`: {node.label} has no property `{name}`"
            findings.add(Stage.ANNOTATION, span, message, did_you_mean(name, node.sites))
        return
    kind = source.made.type
    if source.readable and (kind.scalar is not ScalarType.STRING or kind.is_list):
        message = (
            f"`@embed` on `{site.made.name}`: its source must be a String property, "
            f"but `{name}` is {kind.display()}"
        )
        findings.add(Stage.ANNOTATION, span, message)
