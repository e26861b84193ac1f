// The open question of a link that wants to be asked: what would be done, and the answer.
import { airflow, el } from "./dom.js";
import { opens } from "./dialog.js";
import { actDialog } from "./runs.js";

// A task that does not wait yet would take an answer for a mistake.
const WAITS = "awaiting_input";

async function question(dag) {
  const path = `dags/${encodeURIComponent(dag)}/dagRuns/~/hitlDetails`;
  const { hitl_details: asked } = await airflow("GET", `${path}?response_received=false&state=${WAITS}&limit=1`);
  return asked[0];
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
