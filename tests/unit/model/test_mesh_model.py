"""Whatever happens to links and clusters, each record is on each cluster at most once, and no topic is a copy of a copy of
itself; see `support.model.mesh_model` for what that covers."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations, pairwise, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.state import registrations
from support.model import mesh_model
from support.model.mesh_model import World, every_topic

Settings = dict[tuple[str, str], Mapping[str, Any]]
NAMES: list[Mapping[str, Any]] = [{}, {"naming": {"policy": "prefix", "prefix": "x."}}, {"naming": {"policy": "alias"}}]
WORK = ("write", "plan", "copy", "plan all")
ANYTHING = (*WORK, "lose", "recreate")


@st.composite
def meshes(draw: st.DrawFn) -> tuple[str, Settings]:
    """Links of any pairs of clusters under the same names, as they are by default."""
    clusters = "abcd"[: draw(st.integers(2, 4))]
    pairs = list(permutations(clusters, 2))
    return clusters, {pair: {} for pair in draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))}


@st.composite
def trees(draw: st.DrawFn) -> tuple[str, Settings]:
    """Copies are copied on, under names of any kind, and there is one way only from each cluster to each other one, in one
    direction or both.

    If a cluster in the middle is rebuilt, it is filled again from one side, and a link that then starts anew copies that
    to the other side once more. So only links from the ends do.
    """
    clusters = "abcd"[: draw(st.integers(2, 4))]
    edges = [(clusters[draw(st.integers(0, at - 1))], cluster) for at, cluster in enumerate(clusters[1:], 1)]
    neighbours = Counter(cluster for edge in edges for cluster in edge)
    found: Settings = {}
    for one, other in edges:
        for way in draw(st.sampled_from([[(one, other)], [(other, one)], [(one, other), (other, one)]])):
            on_loss = "restart" if neighbours[way[0]] == 1 else "halt"
            naming = draw(st.sampled_from(NAMES))
            found[way] = {"copies": "forward", "topics": every_topic(on_loss), **naming}
    return clusters, found


@st.composite
def renamed(draw: st.DrawFn) -> tuple[str, Settings]:
    """Two clusters, each of whose topics get other names on the other one."""
    there, back = (draw(st.sampled_from(NAMES[1:])) for _ in range(2))
    return "ab", {("a", "b"): there, ("b", "a"): back}


def happen(world: World, data: st.DataObject, actions: tuple[str, ...]) -> None:
    """Let things happen, up to the end of all copying; what must hold holds all the time."""
    clusters, links = st.sampled_from(sorted(world.clusters)), st.sampled_from(sorted(world.links))
    topics = st.sampled_from("tu")
    if data.draw(st.booleans(), label="another tool was there before"):
        link, topic = data.draw(links), data.draw(topics)
        for _ in range(data.draw(st.integers(1, 4))):
            world.write(world.links[link].source, topic)
        world.move_in(link, topic, data.draw(st.integers(0, 4)))
    for _ in range(data.draw(st.integers(0, 15))):
        match data.draw(st.sampled_from(actions)):
            case "write":
                world.write(data.draw(clusters), data.draw(topics))
            case "plan":
                world.plan(data.draw(links))
            case "copy":
                world.copy(data.draw(links), data.draw(st.integers(1, 3)))
            case "plan all":
                for link in world.links:
                    world.plan(link)
            case "lose":
                world.lose(data.draw(clusters))
            case "recreate":
                world.recreate(data.draw(clusters), data.draw(topics))
        assert world.doubles() == []
        assert world.copies_of_themselves() == []
    world.settle()
    assert world.doubles() == []
    assert world.copies_of_themselves() == []


@settings(max_examples=150, deadline=None)
@given(st.one_of(meshes(), trees(), renamed()), st.data())
def test_each_record_is_on_each_cluster_at_most_once_and_no_topic_is_a_copy_of_itself(
    mesh: tuple[str, Settings], data: st.DataObject
) -> None:
    happen(World(*mesh), data, ANYTHING)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.booleans(), st.data())
def test_where_nothing_is_lost_every_cluster_has_every_record(number: int, tree: bool, data: st.DataObject) -> None:
    """Of a full mesh, and of a line whose links copy on what they got."""
    clusters = "abcd"[:number]
    ways = pairwise(clusters) if tree else combinations(clusters, 2)
    pairs = [pair for one, other in ways for pair in ((one, other), (other, one))]
    world = World(clusters, {pair: {"copies": "forward"} if tree else {} for pair in pairs})
    happen(world, data, WORK)
    assert len({frozenset(world.held(cluster)) for cluster in clusters}) == 1


def copied_both_ways() -> World:
    world = World("ab", {("a", "b"): {}, ("b", "a"): {}})
    for _ in range(3):
        world.write("a", "t")
    return world


def test_what_another_tool_copied_comes_back_if_nobody_notes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sound, broken = copied_both_ways(), copied_both_ways()
    sound.move_in("a-to-b", "t", 2)
    sound.settle()
    assert sound.doubles() == []
    monkeypatch.setattr(mesh_model, "after_moved_in", lambda _, found, *__: found)
    broken.move_in("a-to-b", "t", 2)
    broken.settle()
    assert len(broken.doubles()) == 2


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("producers_left_out", lambda *_: frozenset()),
        ("producers_left_out", lambda copies, writing, source_id, _: registrations.producers_left_out(copies, writing, source_id, "?")),
    ],
)  # fmt: skip
def test_a_link_that_knows_no_copies_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., Any]
) -> None:
    monkeypatch.setattr(mesh_model, name, fault)
    links: Settings = {("a", "b"): {"copies": "forward"}, ("b", "a"): {"copies": "forward"}}
    world = World("ab", links)
    world.write("a", "t")
    for link in world.links:
        world.plan(link)
    for link in (*world.links, *world.links):
        world.copy(link, 10)
    assert world.doubles() != []


def test_topics_without_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World("ab", {("a", "b"): NAMES[1], ("b", "a"): NAMES[1]})
    monkeypatch.setattr(World, "_opposite", lambda *_: iter(()))
    world.write("a", "t")
    with pytest.raises(AssertionError, match="without end"):
        world.settle()
    assert world.copies_of_themselves() != []
