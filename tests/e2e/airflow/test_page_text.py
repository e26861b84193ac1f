"""What brokers, state topics and other users chose is shown as text that hides nothing, in a browser without an Airflow."""

from typing import Any

import pytest
from playwright.sync_api import Page

from strait.text import duration, printable

pytestmark = pytest.mark.airflow

HOSTILE = "<b>\x1b[2J\x07\x9b31m\u202egnp.exe\u2028\u200b\x7f\xa0\U000e0041\ud800 \u2603 \xe9"


def shown(page: Page, script: str) -> Any:
    """What the script returns, which gets the hostile text as `text`."""
    return page.evaluate(f"async (text) => {{ {script} }}", HOSTILE)


def test_characters_that_are_not_visible_are_escaped_as_in_a_terminal(scripts: Page) -> None:
    found = shown(scripts, 'return (await import("./text.js")).printable(`${text}\\na\\tb`);')
    assert found == f"{printable(HOSTILE)}\na\tb" and "\\u202egnp" in found


def test_elements_and_names_are_printable_and_what_is_sent_back_is_unchanged(scripts: Page) -> None:
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
    found, wanted = shown(scripts, script), printable(HOSTILE)
    assert found["texts"] == [wanted * 2, *[wanted] * 6]
    assert found["kept"] == [HOSTILE, HOSTILE] and found["html"] == 0


def test_a_runs_log_keeps_its_lines(scripts: Page) -> None:
    script = """
        const { runPanel } = await import("./runs.js");
        const panel = runPanel();
        panel.say(`Failed: ${text}`);
        return panel.element.textContent;
    """
    assert shown(scripts, script) == f"Failed: {printable(HOSTILE)}"


def test_the_widget_on_airflows_home_page(scripts: Page) -> None:
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
    found = shown(scripts, script)
    assert found.count(printable(HOSTILE)) == 2 and "\\u202eorders" in found


def test_durations_are_those_of_the_terminal_and_large_numbers_are_short(scripts: Page) -> None:
    values = [30, 119, 120, 3570, 7100, 7200, 86_390, 263_000, 1_000_000]
    durations = "async (values) => values.map((await import('./dom.js')).seconds)"
    assert scripts.evaluate(durations, values) == [duration(value) for value in values]
    times = "async (values) => values.map((await import('./dom.js')).when)"
    in_nanoseconds = 1_700_000_000 * 10**9
    assert scripts.evaluate(times, [0, -1, in_nanoseconds]) == [
        "1970-01-01 00:00:00 UTC",
        "1969-12-31 23:59:59 UTC",
        "–",
    ]
    numbers = "async (values) => values.map((await import('./dom.js')).number)"
    found = scripts.evaluate(numbers, [None, -1, 0, 999_999, 1_200_000, 18_200_000_000])
    assert found == ["–", "–", "0", "999,999", "1.2 M", "18.2 G"]
