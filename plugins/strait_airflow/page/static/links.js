// All links, what needs a person first.
import { address, airflowPart, ask, cell, el, millis, number, seconds, stateOf, table, when } from "./dom.js";
import { sparklines } from "./history.js";

const HEADS = ["Link", "Clusters", "State", "Lag, records", "Lag", "Records/s", "Last hours",
  "Latency p99", "Caught up / copying", "Waiting", "Groups in sync", "Last event"];

function groups(row) {
  const found = row.consumer_groups;
  return found ? `${number(found.in_sync)} of ${number(found.all)}` : "–";
}

function linkRow(row, drawn) {
  const reasons = Object.entries(row.waiting || {});
  const waiting = reasons.map(([reason, count]) => `${count} ${reason.replaceAll("_", " ")}`).join(", ");
  return el("tr", {},
    cell(el("a", { href: address("link", row.link) }, row.link), "name"),
    cell(row.source ? `${row.source} → ${row.destination}` : ""),
    cell(stateOf(row)),
    cell(number(row.lag_records), "number"),
    cell(seconds(row.lag_seconds), "number"),
    cell(number(row.records_per_second), "number"),
    cell(drawn(row.link)),
    cell(millis(row.latency_ms_p99), "number"),
    cell(`${number(row.caught_up)} / ${number(row.copying)}`, "number"),
    cell(row.error || row.needs?.[0]?.text || waiting, "name"),
    cell(groups(row), "number"),
    cell(row.last_event ? `${when(row.last_event.at_ms)}: ${row.last_event.text}` : "–", "name"));
}

export async function linksView() {
  const [{ links }, drawn, problems] = await Promise.all([ask("links"), sparklines(), airflowPart()]);
  const rows = links.map((row) => linkRow(row, drawn));
  return [el("h2", {}, "Links"), ...problems, table("Links", HEADS, rows, "No link that you may see.")];
}
