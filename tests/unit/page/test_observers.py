"""Links are followed while somebody looks, once for all who do."""

import time

from strait.exporter.observation import Observation
from strait_airflow.page.observers import Observers


class Watched:
    def __init__(self, link: str) -> None:
        self.newest: Observation | None = Observation(link, "a", "b", 0.0)
        self.said: list[str] = []

    def start(self) -> None:
        self.said.append("start")

    def stop(self) -> None:
        self.said.append("stop")


def observers() -> tuple[Observers, list[Watched]]:
    made: list[Watched] = []

    def make(link: str) -> Watched:
        made.append(Watched(link))
        return made[-1]

    return Observers(make, idle_seconds=100), made


def test_any_number_of_questions_begin_one_watch_of_each_link():
    known, made = observers()
    for _ in range(5):
        for link in ("x", "y"):
            found = known.newest(link)
            assert found is not None and found.link == link
    assert [one.said for one in made] == [["start"], ["start"]]


def test_a_watch_ends_when_nobody_asks_and_begins_anew_with_the_next_question():
    known, made = observers()
    known.newest("x")
    assert known.end_idle(time.monotonic() + 99)
    assert made[0].said == ["start"]
    assert not known.end_idle(time.monotonic() + 101)
    assert made[0].said == ["start", "stop"]
    known.newest("x")
    assert made[1].said == ["start"]
