"""What brokers, state topics and other users chose is shown as text that hides nothing, in a browser without an Airflow."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from strait.config.home import project_root
from strait.text import duration, printable

pytestmark = pytest.mark.airflow

STATIC = project_root() / "plugins/strait_airflow/page/static"
SITE = "http://page.test/"
HOSTILE = "<b>\x1b[2J\x07\x9b31m\u202egnp.exe\u2028\u200b\x7f\xa0\U000e0041\ud800 \u2603 \xe9"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page that may load the files of Strait's."""

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(SITE)
        body = (STATIC / name).read_text(encoding="utf-8") if name else "<!DOCTYPE html><main id=main></main>"
        route.fulfill(body=body, content_type="text/javascript" if name else "text/html")

    page = browser.new_page()
    page.route("**/*", answer)
    page.goto(SITE)
    yield page
    page.close()


def shown(page: Page, script: str) -> Any:
    """What the script returns, which gets the hostile text as `text`."""
    return page.evaluate(f"async (text) => {{ {script} }}", HOSTILE)


def test_characters_that_are_not_visible_are_escaped_as_in_a_terminal(page: Page) -> None:
    found = shown(page, 'return (await import("./text.js")).printable(`${text}\\na\\tb`);')
    assert found == f"{printable(HOSTILE)}\na\tb" and "\\u202egnp" in found


def test_elements_and_names_are_printable_and_what_is_sent_back_is_unchanged(page: Page) -> None:
    script = """
        const { cell, el, label, put, svg } = await import("./dom.js");
        const drawing = svg("svg", { "aria-label": text });
        const box = el("p", { title: text, "aria-label": text, "data-name": text }, text, cell(text));
        const input = label(el("input", { value: text, placeholder: text }), text);
        const named = [drawing, box, input].map((one) => one.getAttribute("aria-label"));
        const texts = [box.textContent, box.title, input.placeholder, ...named];
        put(box, text);
        return { texts: [...texts, box.textContent], kept: [input.value, box.dataset.name], html: box.children.length };
    """
    found, wanted = shown(page, script), printable(HOSTILE)
    assert found["texts"] == [wanted * 2, *[wanted] * 6]
    assert found["kept"] == [HOSTILE, HOSTILE] and found["html"] == 0


def test_a_runs_log_keeps_its_lines(page: Page) -> None:
    script = """
        const { runPanel } = await import("./runs.js");
        const panel = runPanel();
        panel.say(`Failed: ${text}`);
        return panel.element.textContent;
    """
    assert shown(page, script) == f"Failed: {printable(HOSTILE)}"


def test_the_widget_on_airflows_home_page(page: Page) -> None:
    """With as much of React as it uses."""
    script = """
        const said = [];
        const links = [{ link: "\\u202eorders", error: text }];
        const seen = { links, total: 1, summary: { links: 1, looking: 0, states: [] } };
        globalThis.ReactRouterDOM = { Link: "a" };
        globalThis.React = {
          useEffect() {},
          useState: () => [{ seen, error: text }],
          createElement(tag, attributes, ...children) {
            if (tag instanceof Function) return tag(attributes);
            said.push(...children.filter((child) => typeof child === "string"));
            return tag;
          },
        };
        await import("./home.js");
        globalThis.AirflowPlugin();
        return said;
    """
    found = shown(page, script)
    assert found.count(printable(HOSTILE)) == 2 and "\\u202eorders" in found


def test_durations_are_those_of_the_terminal_and_large_numbers_are_short(page: Page) -> None:
    values = [30, 119, 120, 3570, 7100, 7200, 86_390, 263_000, 1_000_000]
    durations = "async (values) => values.map((await import('./dom.js')).seconds)"
    assert page.evaluate(durations, values) == [duration(value) for value in values]
    numbers = "async (values) => values.map((await import('./dom.js')).number)"
    found = page.evaluate(numbers, [None, -1, 0, 999_999, 1_200_000, 18_200_000_000])
    assert found == ["–", "–", "0", "999,999", "1.2 M", "18.2 G"]


def test_charts_have_axes_show_gaps_and_mark_the_same_moment_in_all_of_them(page: Page) -> None:
    script = """
        const { chart } = await import("./chart.js");
        const hour = 3_600_000;
        const points = [[0, null], [hour, 40], [2 * hour, null], [3 * hour, null], [4 * hour, 20], [5 * hour, 30]];
        document.getElementById("main").append(...["Rate", "Lag"].map((title) => chart(title, title, points, String)));
        return [...document.querySelectorAll("rect.gap")].map((one) => one.getAttribute("width"));
    """
    gaps = [float(width) for width in shown(page, script)]
    assert gaps == [pytest.approx(gaps[0])] * 2 and gaps[0] > 400, "one in each: from 1 to 4 of the hours 1 to 5"
    captions, marks = page.locator("figcaption"), page.locator("line.pointed")
    assert captions.all_inner_texts() == ["Rate: 30 now, 20 to 40", "Lag: 30 now, 20 to 40"]
    times = page.locator(".times").first.locator("span")
    assert times.all_inner_texts() == ["01:00", "03:00", "05:00 UTC"]
    assert page.locator(".most").all_inner_texts() == ["40", "40"]
    page.locator("svg").first.hover(position={"x": 1, "y": 5})
    assert captions.all_inner_texts() == ["Rate: 40 at 01-01 01:00", "Lag: 40 at 01-01 01:00"]
    assert [marks.nth(at).get_attribute("visibility") for at in (0, 1)] == ["visible"] * 2
