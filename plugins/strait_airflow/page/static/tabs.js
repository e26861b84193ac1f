// The head that all views of a link share: its name, state, what changes it, and the tabs.
import { above, address, airflowLink, airflowPart, ask, badge, el, prose } from "./dom.js";
import { approvalPart } from "./approve.js";
import { changePart } from "./change.js";
import { commandPart } from "./copy.js";

const TABS = [["", "Overview"], ["topics", "Topics"], ["partitions", "Partitions"], ["groups", "Groups"],
  ["recovery", "Recovery"], ["applications", "Applications"], ["plan", "Plan"]];

const headPart = (link) => el("p", { class: "head" }, badge(link.badge),
  ...(link.source ? [el("span", {}, `${link.source} → ${link.destination}`)] : []),
  ...(link.pool ? [el("span", { class: "soft" }, `in pool ${link.pool}`)] : []));

function tabsPart(link, now) {
  const one = ([part, text]) => el("a", { href: address("link", link.link, ...(part ? [part] : [])), id: `tab-${part}`,
    "aria-current": part === now ? "page" : null }, text);
  return el("nav", { class: "tabs", "aria-label": "Views of the link" }, ...TABS.map(one));
}

// What only an operator can do, most urgent first.
export const needsPart = (link) => (link.needs?.length ? [el("section", { class: "needs", "aria-label": "Needs an operator" },
  el("h3", { class: "bad" }, "Needs an operator"),
  el("ul", {}, ...link.needs.map((need) => el("li", {}, prose(`${need.text}. ${need.remedy}.`)))))] : []);

// What an empty list means: of a link that was never read, nothing is known.
export const none = (link, text) => (link.known ? text : link.error ? "Not known." : "Being read …");

export const askLink = (name) => ask(`links/${encodeURIComponent(name)}`);

// `words`: of the command that shows the same; `asked`: what the view needs besides the link, from which `parts` makes it.
export async function frame(name, tab, words, asked, parts) {
  const [link, problems, ...found] = await Promise.all([askLink(name), airflowPart(), ...asked]);
  const error = link.error ? [el("p", { class: "bad", role: "alert" }, link.error)] : [];
  const [approval, shown] = await Promise.all([approvalPart(link), parts(link, ...found)]);
  const head = [above(), el("div", { class: "top" }, el("h2", {}, name), headPart(link), ...changePart(link)),
    ...error, ...problems, ...approval, tabsPart(link, tab)];
  return [...head, ...shown, commandPart("strait", ...words)];
}

// The link's DAGs in Airflow, and their runs.
export const dagsPart = (link) => el("p", {}, "In Airflow: ", ...link.own_dags.flatMap((dag, at) => [at ? "; " : "",
  airflowLink(`dags/${encodeURIComponent(dag)}`, dag), ", its ",
  airflowLink(`dags/${encodeURIComponent(dag)}/runs`, "runs")]));
