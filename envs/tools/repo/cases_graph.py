"""A helper for graphs: what it does."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.family import Case, case, names, whole, wholes

_MAKE = """
graph = Graph()
for start, end, length in zip('aabbccde', 'bccddeff', V_l): graph.connect(start, end, length)
graph.add_node('z')
"""
_ONE = """
graph = Graph()
for start, end, length in zip('aabbcdee', 'bcdeefgf', V_l): graph.connect(start, end, length, both=False)
"""
_V = {"V_l": wholes(8, 8, 1, 9)}
CASES: tuple[Case, ...] = (
    case("graph.Graph", "", """
        graph = Graph()
        graph.connect(V_n[0], V_n[1])
        ? Graph().nodes()
    """, V_n=names(2)),
    case("graph.Graph.add_node", "", """
        graph = Graph()
        graph.connect(V_n[0], V_n[1])
        graph.add_node(V_n[0])
        graph.add_node(V_n[2])
        ? graph.nodes()
        ? graph.near(V_n[0])
    """, V_n=names(3)),
    case("graph.Graph.connect", "", """
        graph = Graph()
        graph.connect(V_n[0], V_n[1], V_a)
        ? graph.length(V_n[0], V_n[1])
        ? graph.length(V_n[1], V_n[0])
        graph.connect(V_n[0], V_n[1])
        ? graph.length(V_n[0], V_n[1])
    """, V_n=names(2), V_a=whole(2, 99)),
    case("graph.Graph.connect", "one way", """
        graph = Graph()
        graph.connect(V_n[0], V_n[1], V_a, both=False)
        ? graph.length(V_n[0], V_n[1])
        ? graph.length(V_n[1], V_n[0])
        ? graph.nodes()
        ! graph.connect('x', 'y', 0)
        ? graph.nodes()
    """, V_n=names(2), V_a=whole(2, 99)),
    case("graph.Graph.disconnect", "", """
        graph = Graph()
        graph.connect(V_n[0], V_n[1])
        ? graph.disconnect(V_n[0], V_n[1])
        ? graph.disconnect(V_n[0], V_n[1])
        ? graph.near(V_n[0])
        ? graph.near(V_n[1])
        ? graph.disconnect('', V_n[0])
    """, V_n=names(2)),
    case("graph.Graph.nodes", "", """
        graph = Graph()
        for node in V_n: graph.add_node(node)
        ? graph.nodes()
    """, V_n=names(4)),
    case("graph.Graph.near", "", """
        graph = Graph()
        for node in V_n[1:]: graph.connect(V_n[0], node)
        ? graph.near(V_n[0])
        ! graph.near('')
    """, V_n=names(4)),
    case("graph.Graph.length", "", _MAKE, """
        ? [graph.length('a', end) for end in 'bcd']
        ? graph.length('', 'a')
    """, **_V),
    case("graph.Graph.reverse", "", _ONE, """
        graph.add_node('z')
        other = graph.reverse()
        ? other.nodes()
        ? [(node, end, other.length(node, end)) for node in other.nodes() for end in other.near(node)]
        ? graph.near('a')
    """, **_V),
    case("routes.step_counts", "", _MAKE, """
        ? step_counts(graph, 'a')
        ? step_counts(graph, 'z')
    """, **_V),
    case("routes.step_counts", "that are few", _ONE, """
        ? step_counts(graph, 'a', 1)
        ? step_counts(graph, 'a', 2)
        ? step_counts(graph, 'e', 0)
    """, **_V),
    case("routes.step_counts", "in a line", """
        graph = Graph()
        for start, end in zip(V_n, V_n[1:]): graph.connect(start, end)
        ? step_counts(graph, V_n[0])
        ? step_counts(graph, V_n[0], 3)
    """, V_n=names(6)),
    case("routes.distances", "", _MAKE, """
        ? distances(graph, 'a')
    """, **_V),
    case("routes.distances", "of one way", _ONE, """
        ? distances(graph, 'a')
        ? distances(graph, 'e')
        ? distances(graph, 'g')
    """, **_V),
    case("routes.distances", "by a longer way", """
        graph = Graph()
        graph.connect('a', 'b', V_a)
        graph.connect('b', 'c', V_a)
        graph.connect('a', 'c', 2 * V_a + 1)
        ? distances(graph, 'a')
    """, V_a=whole(1, 20)),
    case("routes.shortest_path", "", _MAKE, """
        ? shortest_path(graph, 'a', 'f')
        ? shortest_path(graph, 'f', 'b')
    """, **_V),
    case("routes.shortest_path", "to nowhere", _ONE, """
        ? shortest_path(graph, 'g', 'a')
        ? shortest_path(graph, 'a', '')
        ? shortest_path(graph, 'b', 'b')
        ? shortest_path(graph, 'a', 'g')
    """, **_V),
    case("routes.shortest_path", "of equals", """
        graph = Graph()
        for node in V_n[1:]:
            graph.connect(V_n[0], node, 2)
            graph.connect(node, 'end', 3)
        ? shortest_path(graph, V_n[0], 'end')
    """, V_n=names(4)),
    case("routes.path_length", "", _MAKE, """
        ? path_length(graph, 'abdf')
        ? path_length(graph, 'aba')
        ? path_length(graph, 'abf')
    """, **_V),
    case("routes.path_length", "of little", _MAKE, """
        ? path_length(graph, 'a')
        ? path_length(graph, '')
        ? path_length(graph, 'fdz')
    """, **_V),
    case("shape.parts_of", "", """
        graph = Graph()
        for start, end in zip(V_n[:3], V_n[3:]): graph.connect(start, end)
        graph.connect(V_n[0], V_n[4])
        ? parts_of(graph)
        ? parts_of(Graph())
    """, V_n=names(6)),
    case("shape.degree_table", "", _MAKE, """
        ? degree_table(graph)
    """, **_V),
    case("shape.degree_table", "of one way", """
        graph = Graph()
        for node in V_n: graph.connect(V_n[1], node + 'x', 1, both=False)
        graph.connect(V_n[0], V_n[2])
        ? degree_table(graph)
    """, V_n=names(4)),
    case("shape.farthest", "", _MAKE, """
        ? farthest(graph, 'a')
        ? farthest(graph, 'd')
        ? farthest(graph, 'z')
    """, **_V),
    case("shape.farthest", "of equals", """
        graph = Graph()
        for node in V_n[1:]: graph.connect(V_n[0], node, V_a)
        ? farthest(graph, V_n[0])
    """, V_n=names(4), V_a=whole(1, 20)),
    case("shape.work_order", "", _ONE, """
        ? work_order(graph)
        ? work_order(Graph())
    """, **_V),
    case("shape.work_order", "of others", """
        graph = Graph()
        graph.add_node(V_n[3])
        graph.connect(V_n[0], V_n[1], 1, both=False)
        graph.connect(V_n[2], V_n[0], 1, both=False)
        ? work_order(graph)
    """, V_n=names(4)),
    case("shape.work_order", "in a circle", _ONE, """
        graph.connect('f', 'b', V_a, both=False)
        ! work_order(graph)
    """, V_a=whole(1, 20), **_V),
    case("shape.subgraph", "", _MAKE, """
        part = subgraph(graph, 'bcdy')
        ? part.nodes()
        ? [(node, end, part.length(node, end)) for node in part.nodes() for end in part.near(node)]
        ? graph.nodes()
    """, **_V),
    case("shape.subgraph", "of one way", _ONE, """
        part = subgraph(graph, 'eba')
        ? [(node, end, part.length(node, end)) for node in part.nodes() for end in part.near(node)]
    """, **_V),
)  # fmt: skip
"""Its cases."""
