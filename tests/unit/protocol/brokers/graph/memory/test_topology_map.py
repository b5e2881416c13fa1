"""What a broker of a general graph makes of what others say of their links."""

from __future__ import annotations

from gossamer.protocol.brokers.graph.memory.topology_map import TopologyMap


def chart_of(**links: str) -> TopologyMap:
    """What broker "a" has heard: of each broker, the letters of those that it names."""
    topology = TopologyMap("a")
    for broker, named in links.items():
        topology.set_links(broker, dict.fromkeys(named, 1.0), 0)
    return topology


def test_a_link_works_where_both_ends_say_so() -> None:
    topology = chart_of(a="b", b="ac", c="d", d="c")
    assert topology.reachable == {"a", "b"}
    assert topology.cost("c", "b") is None


def test_who_is_missed_hangs_where_a_link_is_named_and_who_can_be_reached_nowhere() -> None:
    # At the end of a link that it names; else of one that others name; else at the one that asks.
    assert chart_of(a="b", b="a", c="bd", d="c").anchors("cd") == {"c": "b", "d": "c"}
    assert chart_of(a="bc", b="a", c="d", d="").anchors("cd") == {"c": "a", "d": "c"}
    nobody_names = chart_of(a="b", b="a", c="d", d="c", e="")
    assert nobody_names.anchors("cde") == {"c": "a", "d": "a", "e": "a"}
    assert chart_of(a="b", b="ac", c="b").anchors("bc") == {}
    assert chart_of(a="b", b="a").anchors([]) == {}


def test_who_was_never_within_reach_is_lost_from_when_it_is_missed() -> None:
    topology = chart_of(a="b", b="a", c="")
    topology.miss("abc", 5)
    topology.miss("abc", 9)
    assert topology.lost == {"c": 5}
    topology.set_links("c", {"b": 1.0}, 10)
    topology.set_links("b", {"a": 1.0, "c": 1.0}, 10)
    assert topology.lost == {}
