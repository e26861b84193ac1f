// The open question of a link that wants to be asked: what would be done, and the answer.
import { airflow, el } from "./dom.js";
import { opens } from "./dialog.js";
import { WAITS, actDialog } from "./runs.js";

// Of an answer that comes before its scheduler has heard that the task waits, Airflow makes a failed task. So a
// question is shown when it has been there for a while.
const SETTLED_MS = 5000;
const seen = { id: "", at: 0 };

async function question(dag) {
  const path = `dags/${encodeURIComponent(dag)}/dagRuns/~/hitlDetails`;
  const { hitl_details: asked } = await airflow("GET", `${path}?response_received=false&state=${WAITS}&limit=1`);
  const [newest] = asked;
  if (!newest) return null;
  const id = `${newest.task_instance.id} ${newest.task_instance.try_number}`;
  if (seen.id !== id) Object.assign(seen, { id, at: performance.now() });
  return performance.now() - seen.at >= SETTLED_MS ? newest : null;
}

function answerDialog(asked, answer) {
  const { dag_id: dag, dag_run_id: id, task_id: task, map_index: index } = asked.task_instance;
  const path = ["dags", dag, "dagRuns", id, "taskInstances", task, index, "hitlDetails"].map(encodeURIComponent);
  const about = answer === "Approve"
    ? "Exactly what is shown is done. If it is not what would be done any more, nothing is, and you are asked again."
    : "Nothing is done, and you are not asked about the same changes again.";
  return actDialog(`${answer}: ${asked.subject}`, answer, [el("p", {}, about), el("pre", { class: "log" }, asked.body)],
    async (values, panel) => {
      panel.say("Answering…");
      try {
        await airflow("PATCH", path.join("/"), { chosen_options: [answer], params_input: {} });
      } catch (error) {
        panel.say(error.message, "bad");
        return { ok: false };
      }
      return panel.show({ dag, id }, "act");
    });
}

export async function approvalPart(link) {
  if (!link.dags.approve) return [];
  const heading = el("h3", {}, "Waits for approval");
  try {
    const asked = await question(link.dags.approve);
    if (!asked) return [];
    const buttons = ["Approve", "Reject"].map((answer) =>
      opens(answer.toLowerCase(), answer, () => answerDialog(asked, answer), link.may.approve));
    return [heading, el("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Changes to approve" },
      asked.body), el("p", { class: "actions" }, ...buttons)];
  } catch (error) {
    return [heading, el("p", { class: "bad" }, error.message)];
  }
}
