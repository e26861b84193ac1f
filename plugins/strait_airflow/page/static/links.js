// All links: a line that sums them up, of which each part filters, and the links, those that need an operator first.
import { address, airflowPart, ask, badge, cell, count, el, exact, millis, perSecond, plural, prose, seconds, table, total, untilLoss } from "./dom.js";
import { room } from "./frame.js";
import { commandPart } from "./copy.js";
import { sparklines } from "./history.js";
import { mapPart } from "./map.js";
import { filters, listing, pager, searchField, sortHead } from "./paging.js";

const LINKS = 50;
const list = listing("", { search: "", state: "", sort: "urgency", descending: false, source: "", destination: "", pool: "" },
  LINKS);

function groups(row) {
  const found = row.consumer_groups;
  return found && !found.late ? `${exact(found.in_sync)} of ${exact(found.all)}` : "–";
}

const ends = (row) => (row.source ? el("span", {}, `${row.source} → ${row.destination}`,
  ...(row.pool ? [" ", el("span", { class: "soft", title: `in pool ${row.pool}` }, `in ${row.pool}`)] : [])) : "–");

// What a healthy link does needs no words.
function why(row) {
  const waits = Object.entries(row.waiting ?? {}).filter(([reason]) => reason !== "link_stopped"); // its state says so
  const waiting = waits.map(([reason, many]) =>
    `${plural(many, "partition")}: \`${reason}\``);
  if (row.error) return row.error + (row.known ? `; all figures are ${seconds(row.age_seconds)} old` : "");
  const lost = row.losses_new ? [plural(row.losses_new, "new loss", "new losses")] : [];
  return row.needs?.[0]?.text || [...lost, ...waiting].join(", ");
}

function linkRow(row, drawn) {
  const stale = row.age_seconds !== null && row.age_seconds > 10 ? "stale" : "";
  return el("tr", { class: stale },
    cell(el("a", { href: address("link", row.link) }, row.link), "name title"),
    cell(badge(row.badge), "plain"),
    cell(ends(row), "wide keep"),
    cell(total(row.lag_records, row.lag_unknown), "number"),
    cell(seconds(row.lag_seconds), "number"),
    cell(untilLoss(row.seconds_to_loss), "number"),
    cell(perSecond(row.records_per_second), "number"),
    cell(drawn(row.link), "wide"),
    cell(millis(row.latency_ms_p99), "number wide"),
    cell(groups(row), "number wide"),
    cell(prose(why(row)), "name why"));
}

// Each part of the line shows the links that it counts; pressed again, all of them.
function summaryPart(found, show) {
  const { state, sort } = list.wanted;
  const part = (id, text, level, wanted) => {
    const pressed = state === wanted.state && (wanted.sort ?? "urgency") === sort;
    const all = { state: "", sort: "urgency", descending: false };
    const take = () => list.want(pressed ? all : { ...all, ...wanted }, show);
    return el("button", { type: "button", id: `show-${id}`, class: `part ${level}`, "aria-pressed": String(pressed),
      onclick: take }, text);
  };
  const person = found.person
    ? [part("person", `${plural(found.person, "needs", "need")} an operator`, "person", { state: "person" })]
    : [];
  const states = found.states.map((one) => part(one.word.replaceAll(" ", "-"), `${one.count} ${one.word}`, one.level,
    { state: one.word }));
  const lost = found.losses_new ? [part("lost", plural(found.losses_new, "new loss", "new losses"),
    "person", { state: "lost" })] : [];
  const lag = found.behind ? [part("behind", `largest lag ${seconds(found.lag_seconds)}`, "",
    { state: "behind", sort: "lag_seconds", descending: true })] : [];
  const loss = found.losing ? [part("losing", `first loss in ${seconds(found.seconds_to_loss)}`, "person",
    { state: "losing", sort: "seconds_to_loss" })] : [];
  const all = el("strong", {}, plural(found.links, "link"));
  return el("p", { class: "summary", role: "group", "aria-label": "Summary" }, all, ...person, ...loss, ...lost, ...states, ...lag);
}

// What else than the summary filters the list; pressed, it does not any more.
function chosenPart(show) {
  const { source, destination, pool } = list.wanted;
  const chip = (id, text, without) => el("button", { type: "button", id, class: "part", "aria-pressed": "true",
    onclick: () => list.want(without, show) }, `${text} ×`);
  return [
    ...(source || destination ? [chip("show-pair", `${source} → ${destination}`, { source: "", destination: "" })] : []),
    ...(pool ? [chip("show-pool", `pool ${pool}`, { pool: "" })] : []),
  ];
}

// Links of a pool share its Spark application, so they stop and go together.
function poolsPart(pools, show) {
  if (!pools.length) return [];
  const one = ({ name, links, badge: { level, sign } }) => el("button", { type: "button", class: `part ${level}`,
    id: `pool-${name}`, "aria-pressed": String(list.wanted.pool === name),
    onclick: () => list.want({ pool: list.wanted.pool === name ? "" : name }, show) },
  el("span", { "aria-hidden": "true" }, `${sign} `), `${name}: ${plural(links, "link")}`);
  return [el("p", { class: "summary", role: "group", "aria-label": "Pools" }, el("span", { class: "soft" },
    "Application pools"), ...pools.map(one))];
}

export async function linksView(show) {
  const [found, map, drawn, problems] = await Promise.all([ask(`links?${list.query()}`), ask("map"), sparklines(), airflowPart()]);
  const head = (label, key, first, kind) => sortHead(list, label, key, show, { first, kind });
  const heads = [head("Link", "link", false), head("State", "urgency", false), "Clusters",
    head("Lag, records", "lag_records", true), head("Lag", "lag_seconds", true),
    head("Lost in", "seconds_to_loss", false), head("Records/s", "records_per_second", true), "Last hours",
    "Latency p99", "Groups in sync", "Why"];
  const rows = found.links.map((row) => linkRow(row, drawn));
  const none = found.summary.links ? "No link is like that." : "No link that you may see.";
  const paging = found.total > LINKS ? [pager(list, found.total, show)] : [];
  return [el("h2", {}, "Links"), ...problems, summaryPart(found.summary, show), ...mapPart(map, room()),
    ...poolsPart(map.pools, show),
    el("div", { class: "top" }, filters(searchField(list, "Link or cluster contains", show)), ...chosenPart(show)),
    table("Links", heads, rows, none), ...paging, commandPart("strait", "top")];
}
