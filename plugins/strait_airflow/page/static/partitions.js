// A link's partitions: searched, sorted, filtered and paged by the server.
import { address, cell, el, number, seconds, stateOf, table } from "./dom.js";
import { choice, filters, listing, pager, searchField } from "./paging.js";

const list = listing("", { search: "", reason: "", sort: "lag_records", descending: true });

export const partitionsQuery = (link) => list.query(link);

function sortHead(label, key, show) {
  const { sort, descending } = list.wanted;
  const now = sort === key;
  const turn = () => list.want({ descending: now ? !descending : key !== "topic", sort: key }, show);
  const order = now ? (descending ? "descending" : "ascending") : "none";
  const arrow = { descending: " ↓", ascending: " ↑", none: "" }[order];
  const button = el("button", { type: "button", id: `sort-${key}`, onclick: turn }, label + arrow);
  return el("th", { scope: "col", "aria-sort": order }, button);
}

function why(row) {
  if (!row.reason) return cell(row.detail, "name");
  const words = [row.detail, row.meaning, row.remedy].map((text) => el("p", {}, text));
  const id = `why-${row.topic}-${row.partition}`;
  return cell(el("details", { id }, el("summary", {}, row.reason), ...words), "name");
}

function name(row, link) {
  if (row.partition === null) return row.topic;
  const href = address("link", link, "partition", row.topic, row.partition);
  return el("a", { href }, `${row.topic}-${row.partition}`);
}

function partitionRow(row, link, change) {
  return el("tr", {},
    cell(name(row, link), "name"),
    cell(row.destination, "name"),
    cell(stateOf(row)),
    cell(number(row.lag_records), "number"),
    cell(seconds(row.lag_seconds), "number"),
    cell(number(row.position), "number"),
    cell(number(row.end), "number"),
    why(row),
    cell(el("span", {}, ...change(row))));
}

// `change` gives the buttons by which a row is changed.
export function partitionsPart(link, found, show, change) {
  const heads = [sortHead("Partition", "topic", show), "Destination", sortHead("State", "state", show),
    sortHead("Lag, records", "lag_records", show), sortHead("Lag", "lag_seconds", show),
    sortHead("Position", "position", show), sortHead("End", "end", show), sortHead("Reason", "reason", show), "Change"];
  const rows = found.rows.map((row) => partitionRow(row, link, change));
  return [el("h3", {}, "Partitions"),
    filters(searchField(list, "Topic contains", show), choice(list, "reason", "Reason", found.reasons, show)),
    table("Partitions", heads, rows, "No such partition."), pager(list, found.total, show)];
}
