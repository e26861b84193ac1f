// Ending a task group's application, for the link's DAG to submit it again.
import { choose, opens } from "./dialog.js";
import { el } from "./dom.js";
import { actDialog } from "./runs.js";

export function restartButton(link) {
  const groups = (link.plans ?? []).map((plan) => [plan.group, plan.group]);
  const open = () => actDialog(`Restart: link ${link.link}`, "Restart", [
    el("p", {}, "Ends the Spark application of a task group and submits it again, also if it ended too often to be "
      + "submitted by itself. Its topics are not copied meanwhile; nothing is lost or copied twice."),
    choose("Task group", "restart", groups),
  ], ({ restart }, panel) => panel.start(link.dags.restart, { restart }, "submit"));
  return groups.length ? [opens("restart", "Restart", open, link.may.restart)] : [];
}
