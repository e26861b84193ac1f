// A link's topics: each with its most urgent partition, its lag and the time to loss.
import { address, ask, badge, cell, count, el, exact, perSecond, prose, seconds, table, total, untilLoss } from "./dom.js";
import { none } from "./tabs.js";
import { filters, listing, pager, searchField } from "./paging.js";

const HEADS = ["Topic", "State", "Lag, records", "Lag", "Lost in", "Records/s", "Partitions", "Why"];
const list = listing("topics-", { search: "" });

export const askTopics = (path) => ask(`${path}/by_topic?${list.query()}`);

// The partitions of this topic.
const partitionsOf = (link, topic) => `${address("link", link, "partitions")}?${new URLSearchParams({ search: topic })}`;

function topicRow(link, row) {
  const states = row.badges.map((one) => `${exact(one.count)} ${one.word}`).join(", ");
  return el("tr", {},
    cell(el("a", { href: partitionsOf(link, row.topic) }, row.topic), "name title"),
    cell(badge(row.badge), "plain"),
    cell(total(row.lag_records, row.lag_unknown), "number"),
    cell(seconds(row.lag_seconds), "number"),
    cell(untilLoss(row.seconds_to_loss), "number"),
    cell(perSecond(row.records_per_second), "number"),
    cell(row.badges.length > 1 ? states : exact(row.partitions)),
    cell(prose(row.reasons.join("; ")), "name why"));
}

export function topicsPart(link, found, show) {
  const more = found.of > list.page;
  return [...(more ? [filters(searchField(list, "Name contains", show))] : []),
    table("Topics", HEADS, found.rows.map((row) => topicRow(link.link, row)), none(link, "No such topic.")),
    ...(more ? [pager(list, found.total, show)] : [])];
}
