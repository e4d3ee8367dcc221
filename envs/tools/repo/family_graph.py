"""A helper for graphs: nodes and ways, distances, orders, parts."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_graph import CASES
from tetrathlon.envs.tools.repo.family import Family

_GRAPH = '''"""Graphs with lengths."""


class Graph:
    """Nodes and the ways from one to another, each with a length."""

    def __init__(self):
        self._ways = {}

    def add_node(self, node):
        """Add a node, if it is not there."""
        self._ways.setdefault(node, {})

    def connect(self, start, end, length=1, both=True):
        """Add a way from start to end, and one back if both is true; nodes are added as needed.

        A way that is there gets the new length. A length below 1 raises ValueError.
        """
        if length < 1:
            raise ValueError("a way must be longer")
        self.add_node(start)
        self.add_node(end)
        self._ways[start][end] = length
        if both:
            self._ways[end][start] = length

    def disconnect(self, start, end):
        """Take the way from start to end away, not the one back; tell whether there was one."""
        if end not in self._ways.get(start, {}):
            return False
        del self._ways[start][end]
        return True

    def nodes(self):
        """Return all nodes in alphabetical order."""
        return sorted(self._ways)

    def near(self, node):
        """Return the nodes, in alphabetical order, that a way leads to from a node; an unknown one raises KeyError."""
        return sorted(self._ways[node])

    def length(self, start, end):
        """Return the length of the way from start to end; None where there is none."""
        return self._ways.get(start, {}).get(end)

    def reverse(self):
        """Return a new graph with all nodes and all ways the other way round."""
        other = Graph()
        for node in self.nodes():
            other.add_node(node)
            for end in self.near(node):
                other.connect(end, node, self.length(node, end), both=False)
        return other
'''
_ROUTES = '''"""Ways through graphs."""


def step_counts(graph, start, most=None):
    """Return node -> how many steps it is from the start, for all nodes that can be reached, the nearest first.

    With most, only nodes within so many steps are there.
    """
    steps, last = {start: 0}, [start]
    for count in range(1, len(graph.nodes()) + 1):
        if most is not None and count > most:
            break
        found = []
        for node in last:
            for other in graph.near(node):
                if other not in steps:
                    steps[other] = count
                    found.append(other)
        last = found
    return steps


def distances(graph, start):
    """Return node -> length of the shortest way from the start, for all nodes that can be reached."""
    best, open_nodes = {}, {start: 0}
    for _ in graph.nodes():
        if not open_nodes:
            break
        node = min(open_nodes, key=lambda one: (open_nodes[one], one))
        best[node] = open_nodes.pop(node)
        for other in graph.near(node):
            total = best[node] + graph.length(node, other)
            if other not in best and total < open_nodes.get(other, total + 1):
                open_nodes[other] = total
    return best


def shortest_path(graph, start, end):
    """Return the nodes of the shortest way, both ends included; an empty list where none leads there.

    Of several equal ways, the one is taken whose nodes, seen from the end, come first in the alphabet.
    """
    reach = distances(graph, start)
    if end not in reach:
        return []
    path, back = [end], graph.reverse()
    for _ in graph.nodes():
        if path[-1] == start:
            break
        for other in back.near(path[-1]):
            if other in reach and reach[other] + graph.length(other, path[-1]) == reach[path[-1]]:
                path.append(other)
                break
    return path[::-1]


def path_length(graph, path):
    """Return the length of a way through the nodes of a list; None where two have no way between them.

    A list of one node or none has the length 0.
    """
    total = 0
    for start, end in zip(path, path[1:]):
        length = graph.length(start, end)
        if length is None:
            return None
        total += length
    return total
'''
_SHAPE = '''"""What graphs look like."""

from PKG.graph import Graph
from PKG.routes import distances, step_counts


def parts_of(graph):
    """Return the parts of a graph whose ways all lead both ways: sorted lists of nodes, in order of the first ones."""
    parts, seen = [], []
    for node in graph.nodes():
        if node not in seen:
            part = sorted(step_counts(graph, node))
            seen.extend(part)
            parts.append(part)
    return parts


def degree_table(graph):
    """Return (node, number of ways that lead away) for all nodes, most ways first, then in alphabetical order."""
    return sorted(((node, len(graph.near(node))) for node in graph.nodes()), key=lambda pair: (-pair[1], pair[0]))


def farthest(graph, start):
    """Return the node with the longest shortest way from the start, and that length.

    Of equals it is the first in the alphabet. Where no other can be reached, that is the start itself and 0.
    """
    reach = distances(graph, start)
    node = min(reach, key=lambda one: (-reach[one], one))
    return node, reach[node]


def work_order(graph):
    """Return all nodes in an order in which every way leads forward; of several, the first in the alphabet goes first.

    Ways in a circle raise ValueError.
    """
    order = []
    waiting = graph.nodes()
    for _ in graph.nodes():
        ready = [node for node in waiting if not any(node in graph.near(other) for other in waiting)]
        if not ready:
            raise ValueError("there is a circle")
        order.append(ready[0])
        waiting.remove(ready[0])
    return order


def subgraph(graph, nodes):
    """Return a new graph with those of the nodes that are in the graph, and the ways between them."""
    kept = [node for node in nodes if node in graph.nodes()]
    part = Graph()
    for node in kept:
        part.add_node(node)
        for other in graph.near(node):
            if other in kept:
                part.connect(node, other, graph.length(node, other), both=False)
    return part
'''
GRAPH = Family(
    "graph",
    ("wayfinder", "nodework", "linkmap", "routekit", "meshlet", "pathways"),
    """Finds ways in small graphs.

Whatever could come in several orders comes in alphabetical order.""",
    {"graph": _GRAPH, "routes": _ROUTES, "shape": _SHAPE},
    CASES,
    {
        "Graph": ("Graph", "Network", "Net", "Roads"),
        "add_node": ("add_node", "add_place", "ensure_node"),
        "connect": ("connect", "link", "add_way"),
        "disconnect": ("disconnect", "unlink", "drop_way"),
        "near": ("near", "successors", "reached_from"),
        "length": ("length", "weight", "cost"),
        "step_counts": ("step_counts", "steps_from", "hops"),
        "distances": ("distances", "lengths_from", "dijkstra"),
        "shortest_path": ("shortest_path", "best_way", "route"),
        "path_length": ("path_length", "way_length"),
        "parts_of": ("parts_of", "components", "islands"),
        "degree_table": ("degree_table", "degrees"),
        "farthest": ("farthest", "most_remote"),
        "work_order": ("work_order", "topological", "sequence"),
        "subgraph": ("subgraph", "restricted", "cut_out"),
        "reach": ("reach", "known"),
        "waiting": ("waiting", "left"),
    },
    {},
    (
        (
            "graph",
            "        if both:\n            self._ways[end][start] = length\n",
            "        if both:\n            self._ways[end][start] = 1\n",
        ),
        (
            "graph",
            "        self._ways = {}\n",
            "        pass\n\n    _ways = {}\n",
        ),
        (
            "routes",
            "            total = best[node] + graph.length(node, other)\n",
            "            total = graph.length(node, other)\n",
        ),
        (
            "routes",
            "    return path[::-1]",
            "    return path",
        ),
        (
            "shape",
            "            seen.extend(part)\n",
            "            seen.append(node)\n",
        ),
        (
            "routes",
            "key=lambda one: (open_nodes[one], one))",
            "key=lambda one: one)",
        ),
    ),
)
