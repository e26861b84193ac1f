// Records in quarantine that nobody has settled.
import { address, ago, ask, cell, el, exact, table } from "./dom.js";
import { filters, listing, pager, searchField } from "./paging.js";

const HEADS = ["Since", "From", "Offset", "Bytes", "For", "Why"];
const list = listing("quarantine-", { search: "" });

export async function quarantinePart(link, show) {
  if (!link.quarantined) return [];
  const found = await ask(`links/${encodeURIComponent(link.link)}/quarantine?${list.query()}`);
  const rows = found.rows.map((entry) => el("tr", {},
    cell(ago(entry.quarantined_at_ms)),
    cell(el("a", { href: address("link", link.link, "partition", entry.topic, entry.partition) },
      `${entry.topic}-${entry.partition}`), "name"),
    cell(exact(entry.offset), "number"), cell(exact(entry.bytes), "number"), cell(entry.destination, "name"),
    cell(`${entry.reason}: ${entry.detail}`, "name")));
  const error = found.error ? [el("p", { class: "bad" }, found.error)] : [];
  return [el("h3", {}, "Quarantine"), ...error, filters(searchField(list, "Topic contains", show)),
    table("Quarantine", HEADS, rows, found.looking ? "Looking …" : "None."), pager(list, found.total, show)];
}
