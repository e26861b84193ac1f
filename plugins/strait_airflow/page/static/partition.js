// One partition: where it stands, why it waits and what to do, what it lost, and which offsets belong together.
import { above, ago, ask, badge, bytes, cell, count, el, exact, facts, perSecond, prose, seconds, table, unread, untilLoss } from "./dom.js";
import { noticed } from "./losses.js";
import { commandPart, copyable, copyButton } from "./copy.js";
import { rowButtons } from "./pause.js";

const LOSS_HEADS = ["When", "Side", "From offset", "To offset", "Action", "Cause", "Acknowledged"];

// As tools take it: without commas.
const offset = (value, what) => (value >= 0 ? copyable(exact(value), what, String(value)) : "–");

function figures(row) {
  const left = row.position >= 0 && row.end >= 0 ? exact(row.end - row.position) : "–";
  return facts([
    ["Destination topic", row.destination || "–"],
    ["Next offset to copy", offset(row.position, "the next offset")],
    ["End of the source", offset(row.end, "the end of the source")],
    ["Offsets left", left],
    ["First offset that the source still holds", offset(row.log_start, "the first offset")],
    ["Lag, records", count(row.lag_records)],
    ["Lag", seconds(row.lag_seconds)],
    ["Held back by an open transaction", count(row.held_back_records)],
    ["Held back for", seconds(row.held_back_seconds)],
    ["Records/s", perSecond(row.records_per_second)],
    ["Caught up in", seconds(row.seconds_to_catch_up)],
    ["Lost in, without progress", untilLoss(row.seconds_to_loss)],
    ["Records ever written", count(row.written)],
    ["Quarantined", count(row.quarantined)],
    ["Task group and slot", `${row.group || "–"} ${row.slot ?? "–"}`],
  ]);
}

const SHOWN = {
  topic_class: "Class", on_loss: "When records are lost", on_foreign: "When others write into the copy",
  on_refused: "When the destination refuses a record", compression: "Codec of batches that are built",
  max_message_bytes: "Largest batch of the copy", copies: "Copies among its records",
};

function policyPart(policy) {
  const said = Object.entries(policy ?? {}).filter(([name]) => name in SHOWN).map(([name, value]) =>
    [SHOWN[name], name === "max_message_bytes" ? bytes(value) : String(value).replaceAll("_", " ")]);
  return [el("h3", {}, "How it is copied"), said.length ? facts(said) : el("p", {}, "By the defaults.")];
}

const RUN_HEADS = ["Source topic", "From its offset", "Copied to", "From its offset", "Records confirmed", "At",
  "Note"];

function runRow(run) {
  const notes = [run.shared && "others may write there, too",
    run.after_unknown && "the map was rebuilt: where earlier records came from is not known"].filter(Boolean);
  return el("tr", {},
    cell(`generation ${run.generation}, id ${run.source_id}`, "name"), cell(exact(run.source_base), "number"),
    cell(run.destination, "name"), cell(exact(run.destination_base), "number"),
    cell(exact(run.confirmed), "number"), cell(ago(run.checkpoint_at_ms)), cell(notes.join("; "), "name"));
}

// The offset map's segments: in each the offsets of both sides follow from where it begins.
function runsPart(found) {
  const error = found.error ? [el("p", { class: "bad" }, found.error)] : [];
  const more = found.total > found.rows.length
    ? [el("p", { class: "soft" }, `The newest ${found.rows.length} of ${exact(found.total)} segments.`)] : [];
  const empty = found.looking ? "Looking …" : "None: nothing was copied yet.";
  return [el("h3", {}, "Offset map"), ...error, ...more,
    table("Offset map", RUN_HEADS, found.rows.map(runRow), found.error ? "Not known." : empty)];
}

function notKept(name, topic, count) {
  const command = el("code", {}, `strait losses ${name} ${topic}`);
  return count ? [el("p", {}, `The ${exact(count)} oldest losses of the link are not listed here: `, command)] : [];
}

export async function partitionView(name, topic, partition) {
  const path = `links/${encodeURIComponent(name)}`;
  const place = new URLSearchParams({ topic, partition });
  const [link, row, runs] = await Promise.all([ask(path), ask(`${path}/partition?${place}`),
    ask(`${path}/runs?${place}`)]);
  const head = [above(name, ["Partitions", ["link", name, "partitions"]]),
    el("h2", {}, `${topic}-${partition} `, copyButton(topic, "the topic's name"))];
  if (!row.badge) return [...head, unread(row)];
  const why = [row.reason && `\`${row.reason}\``, row.detail].filter(Boolean).join(": ");
  const losses = row.losses.map((loss) => el("tr", {}, cell(ago(loss.at_ms), "title"), cell(loss.side),
    cell(exact(loss.from_offset), "number"), cell(exact(loss.to_offset), "number"), cell(el("code", {}, loss.action)),
    cell(prose(`\`${loss.cause}\`${loss.detail ? `: ${loss.detail}` : ""}`), "name"), cell(noticed(loss), "name")));
  return [...head, el("p", { class: "head" }, badge(row.badge), prose(why)),
    ...[row.meaning, row.remedy].filter(Boolean).map((text) => el("p", {}, prose(text))),
    el("p", { class: "actions" }, ...rowButtons(link, row)), figures(row), ...policyPart(row.policy),
    el("h3", {}, "Losses"), ...notKept(name, topic, row.losses_not_kept),
    table("Losses", LOSS_HEADS, losses, row.losses_not_kept ? "None among the newest." : "None."),
    ...runsPart(runs), commandPart("strait", "status", name, topic)];
}
