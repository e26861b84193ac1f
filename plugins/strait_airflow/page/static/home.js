// The widget on Airflow's home page: how many links do what, and which need a person. Airflow hands out its React, and
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
const unknown = (link) => link.state === "looking";
const words = (state) => state.replaceAll("_", " ");

async function look() {
  const headers = { Accept: "application/json" };
  const answer = await fetch(new URL("strait/api/v1/links", document.baseURI), { headers });
  if (!answer.ok) throw new Error(`Strait's page answers ${answer.status}`);
  return (await answer.json()).links;
}

function useLinks() {
  const [found, setFound] = useState({ links: null, error: "" });
  useEffect(() => {
    let ended = false;
    let timer;
    const again = async () => {
      clearTimeout(timer);
      if (ended || document.hidden) return;
      let soon = false;
      try {
        const links = await look();
        soon = links.some(unknown);
        if (!ended) setFound({ links, error: "" });
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

function summary(links) {
  const states = new Map();
  links.forEach(({ state }) => states.set(state, (states.get(state) ?? 0) + 1));
  const counts = [...states].map(([state, count]) => `${count} ${words(state)}`).join(", ");
  return `${links.length} ${links.length === 1 ? "link" : "links"}: ${counts}`;
}

function why(link) {
  const waiting = Object.entries(link.waiting ?? {}).map(([reason, count]) => `${count} ${reason}`);
  return printable(link.error || waiting.join(", ") || words(link.state));
}

const urgent = (link) => h("li", { key: link.link },
  h(Link, { to: pageOf(link.link), style: LINKED }, printable(link.link)), " ",
  h("span", { style: { ...BAD, ...NAMED } }, why(link)));

function Urgent({ links }) {
  const needing = links.filter((link) => link.needs_person);
  if (!needing.length) return links.some(unknown) ? null : h("p", {}, "No link needs a person.");
  const more = needing.length - MOST_NAMED;
  return h("div", {},
    h("p", {}, `${needing.length} ${needing.length === 1 ? "needs" : "need"} a person:`),
    h("ul", { style: { paddingInlineStart: "1.5em", listStyle: "disc" } }, ...needing.slice(0, MOST_NAMED).map(urgent)),
    more > 0 ? h("p", {}, `and ${more} more`) : null);
}

function Widget() {
  const { links, error } = useLinks();
  if (links?.length === 0) return null; // nothing that this user may see
  return h("section", { "aria-label": NAME, style: FRAME },
    h("div", { style: { display: "flex", gap: "16px", alignItems: "baseline" } },
      h("h2", { style: { fontWeight: 600 } }, "Strait"),
      links ? h("span", {}, summary(links)) : h("span", {}, error ? "" : "Looking"),
      h(Link, { to: PAGE, style: { ...LINKED, marginInlineStart: "auto" } }, "Open the page")),
    error ? h("p", { role: "status", style: BAD }, printable(error)) : null,
    links ? h(Urgent, { links }) : null);
}

globalThis[NAME] = globalThis.AirflowPlugin = Widget;
