// A link's partitions: searched, sorted, filtered and paged by the server.
import { address, ask, badge, cell, count, el, exact, prose, seconds, table, untilLoss } from "./dom.js";
import { none } from "./tabs.js";
import { choice, filters, listing, pager, searchField, sortHead } from "./paging.js";

const list = listing("", { search: "", reason: "", sort: "state", descending: true });

export const askPartitions = (path) => ask(`${path}/partitions?${list.query()}`);

function why(row) {
  if (!row.reason) return cell(row.detail, "name why");
  const words = [row.detail, row.meaning, row.remedy].filter(Boolean).map((text) => el("p", {}, prose(text)));
  const id = `why-${row.topic}-${row.partition}`;
  return cell(el("details", { id }, el("summary", {}, el("code", {}, row.reason)), ...words), "name why");
}

function name(row, link) {
  if (row.partition === null) return row.topic;
  const href = address("link", link, "partition", row.topic, row.partition);
  return el("a", { href }, `${row.topic}-${row.partition}`);
}

function partitionRow(row, link, change, renamed) {
  return el("tr", {},
    cell(name(row, link), "name title"),
    cell(badge(row.badge), "plain"),
    cell(count(row.lag_records), "number"),
    cell(seconds(row.lag_seconds), "number"),
    cell(untilLoss(row.seconds_to_loss), "number"),
    cell(exact(row.position), "number wide"),
    cell(exact(row.end), "number wide"),
    why(row),
    ...(renamed ? [cell(row.destination || "–", "name wide")] : []),
    cell(el("span", { class: "actions" }, ...change(row)), "plain"));
}

// `change` gives the buttons by which a row is changed.
export function partitionsPart(link, found, show, change) {
  const head = (label, key, first = true, kind = "") => sortHead(list, label, key, show, { first, kind });
  const renamed = found.rows.some((row) => row.destination && row.destination !== row.topic);
  const heads = [head("Partition", "topic", false), head("State", "state"), head("Lag, records", "lag_records"),
    head("Lag", "lag_seconds"), head("Lost in", "seconds_to_loss"), head("Position", "position"), head("End", "end"),
    head("Reason", "reason"), ...(renamed ? ["Destination topic"] : []), "Change"];
  const rows = found.rows.map((row) => partitionRow(row, link.link, change, renamed));
  return [filters(searchField(list, "Topic contains", show), choice(list, "reason", "Reason", found.reasons.map((code) => [code, code]), show)),
    table("Partitions", heads, rows, none(link, "No such partition.")), pager(list, found.total, show)];
}
