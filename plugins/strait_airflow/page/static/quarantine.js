// Records in quarantine that nobody has settled.
import { openDialog } from "./dialog.js";
import { address, ago, ask, cell, el, exact, facts, prose, table, when } from "./dom.js";
import { filters, listing, pager, searchField } from "./paging.js";

const HEADS = ["Since", "From", "Offset", "Bytes", "For", "Why", "Record"];
const list = listing("quarantine-", { search: "" });

export async function quarantinePart(link, show) {
  if (!link.quarantined) return [];
  const found = await ask(`links/${encodeURIComponent(link.link)}/quarantine?${list.query()}`);
  const rows = found.rows.map((entry) => el("tr", {},
    cell(ago(entry.quarantined_at_ms)),
    cell(el("a", { href: address("link", link.link, "partition", entry.topic, entry.partition) },
      `${entry.topic}-${entry.partition}`), "name"),
    cell(exact(entry.offset), "number"), cell(exact(entry.bytes), "number"), cell(entry.destination, "name"),
    cell(prose(`\`${entry.reason}\`: ${entry.detail}`), "name"),
    cell(el("button", { id: `record-${entry.at}`, type: "button", disabled: !link.may.quarantine,
      "aria-label": `Show the record ${entry.topic}-${entry.partition} offset ${entry.offset}`,
      onclick: () => recordDialog(link, entry) }, "Show…"))));
  const error = found.error ? [el("p", { class: "bad" }, found.error)] : [];
  return [el("h3", {}, "Quarantine"), ...error, filters(searchField(list, "Topic contains", show)),
    table("Quarantine", HEADS, rows, found.looking ? "Looking …" : found.error ? "Not known." : "None."), pager(list, found.total, show)];
}

// Key, headers and size of one record; its value only when it is asked for.
async function recordDialog(link, entry) {
  const from = `links/${encodeURIComponent(link.link)}/quarantine/${entry.at}`;
  const body = el("div", {}, el("p", { role: "status" }, "Reading …"));
  const load = async (value) => {
    const found = await ask(`${from}${value ? "?value=true" : ""}`).catch((error) => ({ error: error.message }));
    if (found.error) body.replaceChildren(el("p", { class: "bad", role: "status" }, found.error));
    else body.replaceChildren(...content(found, () => load(true)));
  };
  openDialog(`${entry.topic}-${entry.partition}, offset ${exact(entry.offset)}`, (close) => [
    body, el("p", {}, el("button", { type: "button", onclick: close }, "Close"))]);
  await load(false);
}

function content(record, showValue) {
  const size = record.value_bytes === null ? "null" : `${exact(record.value_bytes)} bytes`;
  const value = "value" in record ? part(record.value)
    : el("span", {}, `${size} `, el("button", { type: "button", onclick: showValue }, "Show value"));
  return [el("p", {}, prose(`\`${record.reason}\`: ${record.detail}`)), facts([
    ["Timestamp", record.timestamp_ms < 0 ? "–" : when(record.timestamp_ms)], ["Key", part(record.key)],
    ...record.headers.map(([name, held]) => [`Header ${name}`, part(held)]), ["Value", value]])];
}

function part(held) {
  if (held === null) return "null";
  const cut = held.shown < held.size ? ` … ${exact(held.size)} bytes in all` : "";
  return el("code", { class: "record" }, held.encoding === "hex" ? `0x${held.text}${cut}` : `${held.text}${cut}`);
}
