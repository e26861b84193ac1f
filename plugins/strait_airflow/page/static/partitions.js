// A link's partitions: searched, sorted, filtered and paged by the server.
import { address, cell, el, number, seconds, stateOf, table } from "./dom.js";

const PAGE = 20;
const SEARCHED = 249; // as long as a topic's name can be
const wanted = { link: null };

export function partitionsQuery(link) {
  if (wanted.link !== link) {
    Object.assign(wanted, { link, search: "", reason: "", sort: "lag_records", descending: true, offset: 0 });
  }
  const { search, reason, sort, descending, offset } = wanted;
  return new URLSearchParams({ search, reason, sort, descending, offset, limit: PAGE });
}

function sortHead(label, key, show) {
  const now = wanted.sort === key;
  const turn = () => {
    Object.assign(wanted, { descending: now ? !wanted.descending : key !== "topic", sort: key, offset: 0 });
    show();
  };
  const order = now ? (wanted.descending ? "descending" : "ascending") : "none";
  const arrow = { descending: " ↓", ascending: " ↑", none: "" }[order];
  const button = el("button", { type: "button", id: `sort-${key}`, onclick: turn }, label + arrow);
  return el("th", { scope: "col", "aria-sort": order }, button);
}

const partitionLink = (row) =>
  el("a", { href: address("link", wanted.link, "partition", row.topic, row.partition) }, `${row.topic}-${row.partition}`);

function why(row) {
  if (!row.reason) return cell(row.detail, "name");
  const words = [row.detail, row.meaning, row.remedy].map((text) => el("p", {}, text));
  const id = `why-${row.topic}-${row.partition}`;
  return cell(el("details", { id }, el("summary", {}, row.reason), ...words), "name");
}

function partitionRow(row) {
  return el("tr", {},
    cell(row.partition === null ? row.topic : partitionLink(row), "name"),
    cell(row.destination, "name"),
    cell(stateOf(row)),
    cell(number(row.lag_records), "number"),
    cell(seconds(row.lag_seconds), "number"),
    cell(number(row.position), "number"),
    cell(number(row.end), "number"),
    why(row));
}

function filters(found, show) {
  const set = (name) => (event) => {
    Object.assign(wanted, { [name]: event.target.value, offset: 0 });
    show();
  };
  const search = el("input", { id: "search", type: "search", maxlength: SEARCHED, value: wanted.search,
    oninput: set("search") });
  const options = ["", ...found.reasons].map((one) =>
    el("option", { value: one, selected: one === wanted.reason }, one || "any"));
  const reason = el("select", { id: "reason", onchange: set("reason") }, ...options);
  return el("form", { onsubmit: (event) => event.preventDefault() },
    el("label", {}, "Topic contains", search), el("label", {}, "Reason", reason));
}

function pager(found, show) {
  const go = (by) => () => {
    wanted.offset = Math.max(0, wanted.offset + by);
    show();
  };
  const last = Math.min(wanted.offset + PAGE, found.total);
  const range = found.total ? `${wanted.offset + 1}–${last} of ${found.total}` : "0 of 0";
  return el("p", {},
    el("button", { id: "before", type: "button", disabled: wanted.offset === 0, onclick: go(-PAGE) }, "Previous"), " ",
    el("span", { id: "range" }, range), " ",
    el("button", { id: "after", type: "button", disabled: last >= found.total, onclick: go(PAGE) }, "Next"));
}

export function partitionsPart(found, show) {
  const heads = [sortHead("Partition", "topic", show), "Destination", sortHead("State", "state", show),
    sortHead("Lag, records", "lag_records", show), sortHead("Lag", "lag_seconds", show),
    sortHead("Position", "position", show), sortHead("End", "end", show), sortHead("Reason", "reason", show)];
  return [el("h3", {}, "Partitions"), filters(found, show),
    table("Partitions", heads, found.rows.map(partitionRow), "No such partition."), pager(found, show)];
}
