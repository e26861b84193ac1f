// What can be changed about a link, and why not where this user may not.
import { opens } from "./dialog.js";
import { el } from "./dom.js";
import { pauseButtons } from "./pause.js";
import { quarantineButtons } from "./settle.js";
import { restartButton } from "./restart.js";
import { editTopics } from "./topics.js";

const NEEDS = {
  pause: (link) => `pause and resume (trigger DAG ${link.dags.pause})`,
  edit: (link) => `edit topics (change Variable ${link.variable})`,
  restart: (link) => `restart (trigger DAG ${link.dags.restart})`,
  quarantine: (link) => `settle the quarantine (trigger DAG ${link.dags.quarantine})`,
  approve: (link) => `approve changes (answer DAG ${link.dags.approve})`,
};

export function changePart(link) {
  const buttons = [
    ...pauseButtons(link),
    opens("edit", "Edit topics", () => editTopics(link), link.may.edit),
    ...restartButton(link),
    ...quarantineButtons(link),
  ];
  const denied = Object.entries(NEEDS).filter(([change]) => link.may[change] === false);
  const lacking = denied.map(([, needs]) => needs(link));
  const why = lacking.length ? [el("p", { class: "soft" }, `Airflow does not let you ${lacking.join(", ")}.`)] : [];
  return [el("p", { class: "actions" }, ...buttons), ...why];
}
