// A link's consumer groups: where they would continue on the destination, and why not exactly where they are.
import { above, address, ask, cell, el, number, seconds, table, when } from "./dom.js";
import { choice, filters, listing, pager, searchField } from "./paging.js";

const HEADS = ["Group", "Type", "Source", "Destination", "Partitions", "Re-reads if moved now", "State"];
const OFFSET_HEADS = ["Partition", "Offset", "Destination", "Translated", "Committed", "Re-reads", "State"];
const QUIET = "The destination keeps what the link commits for 365 days, whatever its own retention is.";

const ago = (ms) => `${seconds(Math.max(0, Date.now() - ms) / 1000)} ago`;

const state = (group) => {
  if (!group.selected) return el("span", { class: "soft" }, "not selected");
  if (group.synced) return el("span", { class: "good" }, "in sync");
  if (group.synced_at_ms === null) return el("span", { class: "bad" }, group.why);
  // It consumes, so it is always some records ahead of what was synchronized last.
  return el("span", { class: "good" }, `in sync ${ago(group.synced_at_ms)}; since then: ${group.why}`);
};

function groupRow(link, group) {
  return el("tr", {},
    cell(el("a", { href: address("link", link, "groups", group.group) }, group.group), "name"),
    cell(group.type || "classic"),
    cell(group.source_state || "–"),
    cell(group.destination_state || "not there"),
    cell(number(group.partitions), "number"),
    cell(number(group.rereads), "number"),
    cell(state(group), "name"));
}

function syncPart(sync) {
  if (sync === null) return el("p", {}, "The link does not synchronize consumer groups (`consumer_groups.sync`).");
  const text = `${number(sync.in_sync)} of ${number(sync.groups)} in sync; last synchronized ${ago(sync.at_ms)}, `
    + `every ${sync.interval_seconds} s; ${number(sync.rereads)} records would be read again if all moved now.`;
  const trouble = sync.trouble ? [el("p", { class: "bad" }, sync.trouble)] : [];
  return el("div", {}, el("p", {}, text), ...trouble, el("p", { class: "soft" }, QUIET));
}

function looked(found) {
  if (found.error) return el("p", { class: "bad" }, found.error);
  if (found.looking) return el("p", { role: "status" }, "Both clusters are being asked …");
  return el("p", { class: "soft" }, `As of ${when(found.at_ms)}.`);
}

// Nothing is claimed of groups that were not seen.
function none(found) {
  if (found.looking || found.error) return "";
  return found.of ? "No consumer group is like that." : "No consumer group has offsets in the link's topics.";
}

const list = listing("groups-", { search: "", state: "" });

export async function groupsView(link, show) {
  const found = await ask(`links/${encodeURIComponent(link)}/groups?${list.query(link)}`);
  const rows = found.rows.map((group) => groupRow(link, group));
  return [above(link), el("h2", {}, `Consumer groups of ${link}`), syncPart(found.sync), looked(found),
    filters(searchField(list, "Group contains", show), choice(list, "state", "Has an offset", found.states, show)),
    table("Consumer groups", HEADS, rows, none(found)), pager(list, found.total, show)];
}

const offsets = listing("offsets-", {});

function offsetRow(row) {
  const words = [row.meaning, row.detail].filter(Boolean).map((text) => el("p", {}, text));
  const id = `why-${row.topic}-${row.partition}`;
  const why = el("details", { id }, el("summary", {}, row.state.replaceAll("_", " ")), ...words);
  return el("tr", {},
    cell(`${row.topic}-${row.partition}`, "name"),
    cell(number(row.offset), "number"),
    cell(`${row.to_topic}-${row.partition}`, "name"),
    cell(`${number(row.to_offset)}${row.fit === "exact" ? "" : ` (${row.fit.replaceAll("_", " ")})`}`, "number"),
    cell(number(row.committed), "number"),
    cell(number(row.rereads), "number"),
    cell(why, "name"));
}

export async function groupView(link, group, show) {
  const wanted = offsets.query(`${link}/${group}`);
  wanted.set("group", group);
  const found = await ask(`links/${encodeURIComponent(link)}/group?${wanted}`);
  const head = [above(link, ["Consumer groups", ["link", link, "groups"]]), el("h2", {}, group), looked(found)];
  if (found.error || found.looking) return head;
  return [...head, el("p", {}, state(found)),
    table("Offsets", OFFSET_HEADS, found.rows.map(offsetRow), "It has committed no offset."),
    pager(offsets, found.total, show)];
}
