// Strait's page. All that comes from outside is put in as text, never as HTML.
const API = "api/v1";
const LOOK_MS = 2000;
const PAGE = 20;
const main = document.getElementById("main");
const trouble = document.getElementById("trouble");

function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

async function ask(path) {
  const reply = await fetch(`${API}/${path}`, { headers: { Accept: "application/json" } });
  if (reply.ok) return reply.json();
  const said = await reply.json().catch(() => ({}));
  throw new Error(typeof said.detail === "string" ? said.detail : `Airflow answers ${reply.status}`);
}

const number = (value) => (value === undefined || value === null || value < 0 ? "–" : Math.round(value).toLocaleString("en"));
const seconds = (value) => (value === undefined || value === null || value < 0 ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} s`);
const millis = (value) => (value === undefined || value === null ? "–" : `${Math.round(value)} ms`);
const when = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ") + " UTC";
const linkAddress = (name) => `#/link/${encodeURIComponent(name)}`;
const state = (row) => el("span", { class: row.needs_person || row.needs_decision ? "bad" : row.state === "waiting" ? "" : "good" }, row.state.replaceAll("_", " "));

function table(caption, heads, rows, empty) {
  const body = rows.length ? rows : [el("tr", {}, el("td", { colspan: heads.length, class: "soft" }, empty))];
  const head = el("tr", {}, ...heads.map((each) => (each instanceof Node ? each : el("th", { scope: "col" }, each))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}
const cell = (value, kind = "") => el("td", { class: kind }, value);

async function linksPage() {
  const { links } = await ask("links");
  const rows = links.map((row) => el("tr", {},
    cell(el("a", { href: linkAddress(row.link) }, row.link), "name"),
    cell(row.source ? `${row.source} → ${row.destination}` : ""),
    cell(state(row)),
    cell(number(row.lag_records), "number"), cell(seconds(row.lag_seconds), "number"),
    cell(number(row.records_per_second), "number"), cell(millis(row.latency_ms_p99), "number"),
    cell(`${number(row.caught_up)} / ${number(row.copying)}`, "number"),
    cell(row.error || Object.entries(row.waiting || {}).map(([reason, count]) => `${count} ${reason}`).join(", "), "name")));
  const heads = ["Link", "Clusters", "State", "Lag, records", "Lag", "Records/s", "Latency p99", "Caught up / copying", "Waiting"];
  return [el("h2", {}, "Links"), table("Links", heads, rows, "No link that you may see.")];
}

const shown = { link: null };
function resetShown(link) {
  Object.assign(shown, { link, search: "", reason: "", sort: "lag_records", descending: true, offset: 0 });
}

function sortHead(label, key) {
  const now = shown.sort === key;
  const turn = () => { shown.descending = now ? !shown.descending : key !== "topic"; shown.sort = key; shown.offset = 0; show(); };
  return el("th", { scope: "col", "aria-sort": now ? (shown.descending ? "descending" : "ascending") : "none" },
    el("button", { type: "button", id: `sort-${key}`, onclick: turn }, label + (now ? (shown.descending ? " ↓" : " ↑") : "")));
}

function partitionsPart(found) {
  const search = el("input", { id: "search", type: "search", maxlength: 249, value: shown.search,
    oninput: (event) => { shown.search = event.target.value; shown.offset = 0; show(); } });
  const reason = el("select", { id: "reason", onchange: (event) => { shown.reason = event.target.value; shown.offset = 0; show(); } },
    ...["", ...found.reasons].map((one) => el("option", { value: one, selected: one === shown.reason }, one || "any")));
  const rows = found.rows.map((row) => el("tr", {},
    cell(row.partition === null ? row.topic : `${row.topic}-${row.partition}`, "name"), cell(row.destination, "name"), cell(state(row)),
    cell(number(row.lag_records), "number"), cell(seconds(row.lag_seconds), "number"),
    cell(number(row.position), "number"), cell(number(row.end), "number"),
    row.reason ? el("td", { class: "name" }, el("details", { id: `why-${row.topic}-${row.partition}` }, el("summary", {}, row.reason),
      el("p", {}, row.detail), el("p", {}, row.meaning), el("p", {}, row.remedy))) : cell(row.detail, "name")));
  const heads = [sortHead("Partition", "topic"), "Destination", sortHead("State", "state"), sortHead("Lag, records", "lag_records"),
    sortHead("Lag", "lag_seconds"), sortHead("Position", "position"), sortHead("End", "end"), sortHead("Reason", "reason")];
  const go = (by) => () => { shown.offset = Math.max(0, shown.offset + by); show(); };
  const last = Math.min(shown.offset + PAGE, found.total);
  return [el("h3", {}, "Partitions"),
    el("form", { onsubmit: (event) => event.preventDefault() }, el("label", {}, "Topic contains", search), el("label", {}, "Reason", reason)),
    table("Partitions", heads, rows, "No such partition."),
    el("p", {}, el("button", { id: "before", type: "button", disabled: shown.offset === 0, onclick: go(-PAGE) }, "Previous"), " ",
      el("span", { id: "range" }, found.total ? `${shown.offset + 1}–${last} of ${found.total}` : "0 of 0"), " ",
      el("button", { id: "after", type: "button", disabled: last >= found.total, onclick: go(PAGE) }, "Next"))];
}

async function linkPage(name) {
  if (shown.link !== name) resetShown(name);
  const query = new URLSearchParams({ search: shown.search, reason: shown.reason, sort: shown.sort,
    descending: shown.descending, offset: shown.offset, limit: PAGE });
  const path = `links/${encodeURIComponent(name)}`;
  const [link, found] = await Promise.all([ask(path), ask(`${path}/partitions?${query}`)]);
  const facts = [["State", link.state.replaceAll("_", " ")], ["Lag, records", number(link.lag_records)], ["Lag", seconds(link.lag_seconds)],
    ["Records/s", number(link.records_per_second)], ["Latency p99", millis(link.latency_ms_p99)], ["Caught up", number(link.caught_up)],
    ["Losses", number(link.losses)], ["Quarantined", number(link.quarantined)]];
  const parts = [el("p", {}, el("a", { href: "#/" }, "All links")), el("h2", {}, name),
    el("p", { class: "soft" }, link.source ? `${link.source} → ${link.destination}` : "")];
  if (link.error) return [...parts, el("p", { class: "bad" }, link.error)];
  parts.push(el("dl", {}, ...facts.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value)))), ...partitionsPart(found));
  const slots = (link.slots || []).map((slot) => el("tr", {}, cell(`${slot.group} ${slot.slot}`), cell(slot.application || "–", "name"),
    cell(slot.host || "–", "name"), cell(slot.silent ? el("span", { class: "bad" }, "silent") : "reports"),
    cell(number(slot.records_per_second), "number"), cell(millis(slot.latency_ms_p99), "number")));
  parts.push(el("h3", {}, "Slots"), table("Slots", ["Slot", "Application", "Host", "State", "Records/s", "Latency p99"], slots, "None yet."));
  const losses = (link.losses_newest || []).map((loss) => el("tr", {}, cell(when(loss.at_ms)), cell(`${loss.topic}-${loss.partition}`, "name"),
    cell(loss.cause), cell(loss.action)));
  parts.push(el("h3", {}, "Losses"), table("Losses", ["When", "Partition", "Cause", "Action"], losses, "None."));
  parts.push(el("h3", {}, "Plan in force"), ...(link.plans || []).map((plan) => el("details", { id: `plan-${plan.group}` },
    el("summary", {}, `Task group ${plan.group}, version ${plan.version}${plan.stopped ? ", stopped" : ""}`),
    el("pre", {}, JSON.stringify(plan.settings, null, 2)))));
  return parts;
}

// A new look replaces all; what was open, and where the keyboard is, stays.
function replaceMain(parts) {
  const open = new Set([...main.querySelectorAll("details[open]")].map((one) => one.id));
  const active = document.activeElement;
  const [id, caret] = [active?.id, active?.selectionStart];
  const scrolled = [...main.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  main.replaceChildren(...parts);
  main.querySelectorAll("details").forEach((one) => { one.open = open.has(one.id); });
  main.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = scrolled[at] ?? 0; });
  const again = id && id !== "main" ? document.getElementById(id) : null;
  again?.focus({ preventScroll: true });
  if (again?.type === "search" && typeof caret === "number") again.setSelectionRange(caret, caret);
}

let turn = 0;
let timer;
async function show() {
  clearTimeout(timer);
  const mine = ++turn;
  const matched = /^#\/link\/(.+)$/.exec(location.hash);
  try {
    const parts = matched ? await linkPage(decodeURIComponent(matched[1])) : await linksPage();
    if (mine !== turn) return;
    // An element that the keyboard is on within a table's link or an open list would be taken away under the fingers.
    if (document.activeElement?.tagName !== "SELECT" || !main.contains(document.activeElement)) replaceMain(parts);
    trouble.textContent = "";
  } catch (error) {
    if (mine !== turn) return;
    trouble.textContent = error instanceof TypeError ? "Airflow does not answer; trying again." : error.message;
  }
  if (!document.hidden) timer = setTimeout(show, LOOK_MS);
}

function theme() {
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  try {
    const names = parent.document.documentElement.classList;
    if (parent !== window) dark = names.contains("dark");
  } catch { /* another origin's frame: the browser's preference stands */ }
  document.documentElement.classList.toggle("dark", dark);
}

theme();
setInterval(theme, LOOK_MS); // Airflow tells a frame nothing when its own theme is switched
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => { if (!document.hidden) show(); });
show();
