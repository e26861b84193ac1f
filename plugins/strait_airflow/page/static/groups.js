// A link's consumer groups: where they would continue on the destination, and why not exactly where they are.
import { above, address, ago, ask, badge, cell, count, el, exact, plural, seconds, table, when } from "./dom.js";
import { commandPart } from "./copy.js";
import { frame } from "./tabs.js";
import { choice, filters, listing, pager, searchField } from "./paging.js";

const HEADS = ["Group", "Type", "Source", "Destination", "Partitions", "Re-reads if moved now", "State"];
const OFFSET_HEADS = ["Partition", "Offset", "Destination", "Translated", "Committed", "Re-reads", "State"];
const QUIET = "The destination keeps what the link commits for 365 days, whatever its own retention is.";

const state = (group) => {
  if (!group.why || !group.selected) return badge(group.badge);
  if (group.synced_at_ms === null) return el("span", {}, badge(group.badge), ` ${group.why}`);
  // It consumes, so it is always some records ahead of what was synchronized last.
  return el("span", {}, badge(group.badge), " ", ago(group.synced_at_ms), `; since then: ${group.why}`);
};

function groupRow(link, group) {
  return el("tr", {},
    cell(el("a", { href: address("link", link, "groups", group.group) }, group.group), "name title"),
    cell(group.type || "classic"),
    cell(group.source_state || "–"),
    cell(group.destination_state || "not there"),
    cell(exact(group.partitions), "number"),
    cell(count(group.rereads), "number"),
    cell(state(group), "name"));
}

// Nothing is claimed while no application reports.
function syncPart({ wanted, report, age_seconds: age, late }) {
  if (wanted === null) return el("p", { class: "soft" }, "Whether the link synchronizes consumer groups is not known yet.");
  if (!wanted) {
    return el("p", {}, "The link does not synchronize consumer groups (", el("code", {}, "consumer_groups.sync"), ").");
  }
  if (report === null) {
    return el("p", { class: "bad" }, "The link synchronizes consumer groups, but no application has reported on them for "
      + "minutes: none may be running.");
  }
  const often = `every ${report.interval_seconds} s`;
  if (late) {
    return el("p", { class: "bad" }, `Last synchronized ${seconds(age)} ago, and not ${often} as set: how many of `
      + `${exact(report.groups)} are in sync is unknown.`);
  }
  const text = `${exact(report.in_sync)} of ${exact(report.groups)} in sync; last synchronized ${seconds(age)} ago, `
    + `${often}; ${plural(report.rereads, "record")} would be read again if all moved now.`;
  const trouble = report.trouble ? [el("p", { class: "bad" }, report.trouble)] : [];
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

export const groupsView = (name, show) => frame(name, "groups", ["groups", name],
  [ask(`links/${encodeURIComponent(name)}/groups?${list.query()}`)], (link, found) => groupsPart(name, found, show));

function groupsPart(link, found, show) {
  const rows = found.rows.map((group) => groupRow(link, group));
  return [syncPart(found.sync), looked(found),
    filters(searchField(list, "Group contains", show), choice(list, "state", "Has an offset", Object.entries(found.words), show)),
    table("Consumer groups", HEADS, rows, none(found)), pager(list, found.total, show)];
}

const offsets = listing("offsets-", {});

function offsetRow(row) {
  const words = [row.meaning, row.detail].filter(Boolean).map((text) => el("p", {}, text));
  const id = `why-${row.topic}-${row.partition}`;
  const why = el("details", { id }, el("summary", {}, badge(row.badge)), ...words);
  return el("tr", {},
    cell(`${row.topic}-${row.partition}`, "name"),
    cell(exact(row.offset), "number"),
    cell(`${row.to_topic}-${row.partition}`, "name"),
    cell(`${exact(row.to_offset)}${row.fit === "exact" ? "" : ` (${row.fit.replaceAll("_", " ")})`}`, "number"),
    cell(exact(row.committed), "number"),
    cell(exact(row.rereads), "number"),
    cell(why, "name"));
}

export async function groupView(link, group, show) {
  const wanted = offsets.query();
  wanted.set("group", group);
  const found = await ask(`links/${encodeURIComponent(link)}/group?${wanted}`);
  const head = [above(link, ["Consumer groups", ["link", link, "groups"]]), el("h2", {}, group), looked(found)];
  if (found.looking || (found.error && !found.rows)) return head;
  return [...head, el("p", {}, state(found)),
    table("Offsets", OFFSET_HEADS, found.rows.map(offsetRow), "It has committed no offset."),
    pager(offsets, found.total, show), commandPart("strait", "groups", link, group)];
}
