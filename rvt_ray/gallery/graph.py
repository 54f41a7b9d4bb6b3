"""A program as a small graph: layout for the SVG that the template draws.

The target stands on top, every other variable one layer below the variable nearest to the target that a
relation ties it to. Unary constraints stand inside their variable's box, relations are arrows from first to
second argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from rvt_ray.gallery.palette import hex_colour
from rvt_ray.reasoning.program import Constraint, Program
from rvt_ray.records import Tree

BOX_WIDTH, LINE, PAD, GAP_X, GAP_Y = 290, 19, 12, 60, 30
LABEL_LINE, MAX_CHARS = 18, 36


@dataclass(frozen=True)
class GraphNode:
    """A variable: box in SVG pixels, heading and one line per unary constraint."""

    name: str
    heading: str
    colours: list[str]
    lines: list[str]
    is_target: bool
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class GraphEdge:
    """The relations from one variable to another: a line and its labels."""

    x1: float
    y1: float
    x2: float
    y2: float
    label_x: float
    label_y: float
    label_width: float
    label_height: float
    labels: list[str]


@dataclass(frozen=True)
class Graph:
    """The whole picture; `text` says the same in words for those who cannot see it."""

    width: float
    height: float
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    text: str


def phrase(constraint: Constraint) -> str:
    """A constraint without its variables: "colour = red", "left_of (at the start)"."""
    words = constraint.predicate.replace("_", " ")
    if constraint.value is not None:
        words += f" = {constraint.value}"
    if constraint.scope is not None:
        words += f" ({constraint.scope.replace('_', ' ')})"
    return words


def graph(program: Program, tree: Tree, target_ids: list[int]) -> Graph:
    """Lay a program out. Instance ids of anchors come from the reasoning tree's nodes of the same name."""
    bound = {node.node: node.instance_ids for node in tree.nodes}
    bound[program.target] = target_ids
    unary: dict[str, list[str]] = {name: [] for name in program.variables}
    relations: dict[tuple[str, str], list[str]] = {}
    for constraint in program.constraints:
        if len(constraint.args) == 1:
            unary.setdefault(constraint.args[0], []).append(phrase(constraint))
        else:
            relations.setdefault((constraint.args[0], constraint.args[1]), []).append(phrase(constraint))
    layers = _layers(program.target, list(unary), list(relations))
    gaps = _gaps(layers, relations)

    wide = max(len(layer) for layer in layers)
    label_width = max([_text_width(label) for labels in relations.values() for label in labels], default=0.0)
    step = max(BOX_WIDTH + GAP_X, label_width + 24) if wide > 1 else BOX_WIDTH
    width = max(step * (wide - 1) + BOX_WIDTH, label_width) + 2 * PAD
    nodes: dict[str, GraphNode] = {}
    y = float(PAD)
    for depth, layer in enumerate(layers):
        left = (width - (step * (len(layer) - 1) + BOX_WIDTH)) / 2
        tallest = 0.0
        for i, name in enumerate(layer):
            lines = [_short(line) for line in unary[name]]
            height = PAD * 1.5 + LINE * (1 + len(lines))
            nodes[name] = GraphNode(
                name,
                _short(_heading(name, bound.get(name, []), name == program.target)),
                [hex_colour(i) for i in bound.get(name, [])[:4]],
                lines,
                name == program.target,
                left + i * step,
                y,
                BOX_WIDTH,
                height,
            )
            tallest = max(tallest, height)
        y += tallest + gaps[depth]
    edges = _edges(relations, nodes)
    # Labels of relations inside one layer may stick out below the boxes.
    bottom = max([n.y + n.height for n in nodes.values()] + [e.label_y + e.label_height for e in edges])
    return Graph(width, bottom + PAD, list(nodes.values()), edges, _text(program))


def _gaps(layers: list[list[str]], relations: dict[tuple[str, str], list[str]]) -> list[float]:
    """Room below each layer for the labels of the relations that cross it."""
    depth_of = {name: depth for depth, layer in enumerate(layers) for name in layer}
    gaps = [float(GAP_Y)] * len(layers)
    merged = _merged(relations)
    for pair, labels in merged.items():
        upper = min(depth_of[name] for name in pair)
        gaps[upper] = max(gaps[upper], 2 * GAP_Y + LABEL_LINE * sum(len(v) for v in labels.values()))
    return gaps


def _merged(
    relations: dict[tuple[str, str], list[str]],
) -> dict[tuple[str, str], dict[tuple[str, str], list[str]]]:
    """Relations grouped by unordered pair, so that both directions share the room between two boxes."""
    merged: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for (a, b), labels in relations.items():
        merged.setdefault((min(a, b), max(a, b)), {})[(a, b)] = labels
    return merged


def _edges(relations: dict[tuple[str, str], list[str]], nodes: dict[str, GraphNode]) -> list[GraphEdge]:
    edges = []
    for directions in _merged(relations).values():
        for number, ((first, second), labels) in enumerate(directions.items()):
            a, b = nodes[first], nodes[second]
            shift = (number - (len(directions) - 1) / 2) * 70
            ax, bx = a.x + a.width / 2 + shift, b.x + b.width / 2 + shift
            if a.y == b.y:  # side by side: a straight arrow between the facing sides
                ax, bx = (a.x + a.width, b.x) if a.x < b.x else (a.x, b.x + b.width)
                ay = by = a.y + min(a.height, b.height) / 2 + number * 12
                mx, my = (ax + bx) / 2, max(a.y + a.height, b.y + b.height) + GAP_Y / 3 + number * LABEL_LINE
            else:
                ay, by = (a.y + a.height, b.y) if a.y < b.y else (a.y, b.y + b.height)
                mx, my = (ax + bx) / 2, (ay + by) / 2
                my += (number - (len(directions) - 1) / 2) * LABEL_LINE * len(labels) - 9 * len(labels)
            width = max(_text_width(label) for label in labels)
            edges.append(
                GraphEdge(ax, ay, bx, by, mx, my, width, LABEL_LINE * len(labels), [*map(_short, labels)])
            )
    return edges


def _layers(target: str, names: list[str], pairs: list[tuple[str, str]]) -> list[list[str]]:
    near: dict[str, list[str]] = {name: [] for name in names}
    for a, b in pairs:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    depth = {target: 0}
    queue = [target]
    for name in queue:
        for other in near.get(name, []):
            if other not in depth:
                depth[other] = depth[name] + 1
                queue.append(other)
    for name in names:  # a program is connected; a broken one is still shown
        depth.setdefault(name, 1)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name, level in depth.items():
        layers[level].append(name)
    return layers


def _heading(name: str, ids: list[int], is_target: bool) -> str:
    who = ", ".join(f"#{i}" for i in ids[:4]) + (" …" if len(ids) > 4 else "")
    if is_target:
        return f"{name} (target): {who or 'nothing'}"
    return f"{name}: {who}" if who else name


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _text_width(text: str) -> float:
    return len(_short(text)) * 7.4 + 14


def _text(program: Program) -> str:
    parts = [f"target {program.target}"]
    for c in program.constraints:
        if len(c.args) == 1:
            parts.append(f"{c.args[0]}: {phrase(c)}")
        else:
            parts.append(f"{c.args[0]} {phrase(c)} {c.args[1]}")
    return "; ".join(parts)
