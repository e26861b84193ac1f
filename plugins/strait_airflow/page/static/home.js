// The widget on Airflow's home page: how many links do what, and which need an operator. Airflow hands out its React, and
// takes the component from the global variable that has the widget's name.
import { printable } from "./text.js";

const NAME = "Strait links"; // as the plugin registers it
const LOOK_MS = 10_000; // nobody stares at it
const FIRST_MS = 2_000; // until every link was looked at
const MOST_NAMED = 5;
const { createElement: h, useEffect, useState } = globalThis.React;
const { Link } = globalThis.ReactRouterDOM;

// Airflow's own colors, which follow its theme.
const LINE = "1px solid var(--chakra-colors-border, currentColor)";
const NAMED = { overflowWrap: "anywhere" };
const LINKED = { ...NAMED, color: "var(--chakra-colors-fg-info, inherit)", textDecoration: "underline" };
const FRAME = { border: LINE, borderRadius: "6px", padding: "12px 16px", order: 2 };
const BAD = { color: "var(--chakra-colors-fg-error, inherit)" };

const PAGE = "/plugin/strait";
const pageOf = (link) => `${PAGE}#/link/${encodeURIComponent(link)}`;

// The links that need an operator, and how many there are of each state.
async function look() {
  const headers = { Accept: "application/json" };
  const asked = new URLSearchParams({ state: "person", limit: MOST_NAMED });
  const answer = await fetch(new URL(`strait/api/v1/links?${asked}`, document.baseURI), { headers });
  if (!answer.ok) throw new Error(`Strait's page answers ${answer.status}`);
  return answer.json();
}

function useLinks() {
  const [found, setFound] = useState({ seen: null, error: "" });
  useEffect(() => {
    let ended = false;
    let timer;
    const again = async () => {
      clearTimeout(timer);
      if (ended || document.hidden) return;
      let soon = false;
      try {
        const seen = await look();
        soon = seen.summary.looking > 0;
        if (!ended) setFound({ seen, error: "" });
      } catch (error) {
        if (!ended) setFound((before) => ({ ...before, error: error.message }));
      }
      clearTimeout(timer);
      if (!ended) timer = setTimeout(again, soon ? FIRST_MS : LOOK_MS);
    };
    again();
    document.addEventListener("visibilitychange", again);
    return () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, []);
  return found;
}

function line({ links, states }) {
  const counts = states.map(({ word, count }) => `${count} ${word}`).join(", ");
  return `${links} ${links === 1 ? "link" : "links"}: ${counts}`;
}

const urgent = (link) => h("li", { key: link.link },
  h(Link, { to: pageOf(link.link), style: LINKED }, printable(link.link)), " ",
  h("span", { style: { ...BAD, ...NAMED } }, printable(link.error || link.needs?.[0]?.text || link.badge.word)));

function Urgent({ links, total, summary }) {
  if (!total) return summary.looking ? null : h("p", {}, "No link needs an operator.");
  const more = total - links.length;
  return h("div", {},
    h("p", {}, `${total} ${total === 1 ? "needs" : "need"} an operator:`),
    h("ul", { style: { paddingInlineStart: "1.5em", listStyle: "disc" } }, ...links.map(urgent)),
    more > 0 ? h("p", {}, `and ${more} more`) : null);
}

function Widget() {
  const { seen, error } = useLinks();
  if (seen?.summary.links === 0) return null; // nothing that this user may see
  return h("section", { "aria-label": NAME, style: FRAME },
    h("div", { style: { display: "flex", gap: "16px", alignItems: "baseline" } },
      h("h2", { style: { fontWeight: 600 } }, "Strait"),
      h("span", {}, seen ? line(seen.summary) : error ? "" : "Being read"),
      h(Link, { to: PAGE, style: { ...LINKED, marginInlineStart: "auto" } }, "Open the page")),
    error ? h("p", { role: "status", style: BAD }, printable(error)) : null,
    seen ? h(Urgent, seen) : null);
}

globalThis[NAME] = globalThis.AirflowPlugin = Widget;
