// Runs of DAGs. Airflow does all that the page changes: with its permissions, its audit log and its task logs.
import { openDialog } from "./dialog.js";
import { airflow, airflowLink, el, later, put } from "./dom.js";

const OVER = ["success", "failed"];
const LINES = 200;
const DONE = "done: ";
const NEXT_LOOKS = 60;
const ASKED_AGAIN = "Airflow has not taken the answer, and asks again.";

// The state of a task that waits for a person.
export const WAITS = "awaiting_input";

const none = (instead) => (error) => {
  if (error.status !== 404) throw error;
  return instead;
};
const path = (...parts) => parts.map(encodeURIComponent).join("/");
const runPath = (run) => path("dags", run.dag, "dagRuns", run.id);
const taskPath = (run, task) => `${runPath(run)}/${path("taskInstances", task.task_id)}`;

// Like Airflow's own, and of no other run, so that a request may be sent again.
function newId() {
  const random = Array.from(crypto.getRandomValues(new Uint8Array(4)), (one) => one.toString(16).padStart(2, "0"));
  return `manual__${new Date().toISOString()}_${random.join("")}`;
}

// Starts a run. Of a DAG that is paused no run would ever begin.
export async function trigger(dag, conf) {
  const { is_paused: paused } = await airflow("GET", path("dags", dag));
  if (paused) throw new Error(`DAG ${dag} is paused in Airflow. Unpause it there first.`);
  const id = newId();
  await airflow("POST", `${path("dags", dag)}/dagRuns`, { dag_run_id: id, logical_date: null, conf });
  return { dag, id };
}

export async function newestRun(dag) {
  const { dag_runs: runs } = await airflow("GET", `${path("dags", dag)}/dagRuns?order_by=-run_after&limit=1`);
  return runs[0]?.dag_run_id ?? "";
}

// The run that begins after the one that was the newest; a text that says why there is none.
export async function nextRun(dag, before) {
  const { is_paused: paused } = await airflow("GET", path("dags", dag));
  if (paused) return `DAG ${dag} is paused in Airflow: it is acted upon when somebody unpauses it.`;
  for (let looks = 0; looks < NEXT_LOOKS; looks += 1) {
    const id = await newestRun(dag);
    if (id !== before) return { dag, id };
    await later();
  }
  return `DAG ${dag} has not begun a run in ${NEXT_LOOKS} s: see whether Airflow's triggerer runs.`;
}

// What a task of the run said so far: its log lines that are Strait's, and the error that ended it.
async function said(run, task) {
  if (!task?.try_number) return { lines: [], error: "" };
  const asked = `full_content=true&map_index=${task.map_index}`;
  const log = airflow("GET", `${taskPath(run, task)}/logs/${task.try_number}?${asked}`);
  const { content } = await log.catch(none({ content: [] }));
  const events = content.filter((event) => typeof event === "object");
  const errors = events.flatMap((event) => event.error_detail ?? []).map((one) => one.exc_value);
  const ours = events.filter((event) => event.logger?.startsWith("strait"));
  const failed = ours.find((event) => event.level === "error")?.event;
  return { lines: ours.map((event) => event.event).slice(-LINES), error: errors.at(-1) ?? failed ?? "" };
}

// The task's last line, if that is its result, else what it returned, if that is a text; Airflow keeps it as JSON.
async function returned(run, task, lines) {
  if (lines.at(-1)?.startsWith(DONE)) return lines.at(-1).slice(DONE.length);
  const asked = `${taskPath(run, task)}/xcomEntries/return_value?map_index=${task.map_index}`;
  const { value } = await airflow("GET", asked).catch(none({ value: "" }));
  try {
    return String(JSON.parse(value));
  } catch {
    return String(value ?? "");
  }
}

// The newest of the run's tasks that has begun, or the one that is asked for.
function newest(tasks, wanted) {
  const begun = tasks.filter((task) => task.start_date && (!wanted || task.task_id === wanted));
  return begun.sort((one, other) => one.start_date.localeCompare(other.start_date)).at(-1);
}

async function look(run, wanted) {
  const { state: ofRun } = await airflow("GET", runPath(run));
  const { task_instances: tasks } = await airflow("GET", `${runPath(run)}/taskInstances`);
  const failed = ofRun === "failed" && tasks.find((one) => one.state === "failed");
  const task = failed || newest(tasks, wanted);
  // What comes after the task that is asked for, nobody has to wait for.
  const { lines, error } = await said(run, task);
  const over = wanted && task?.task_id === wanted && task.state === "success";
  const state = over ? (error ? "failed" : "success") : ofRun; // the verdict of the run has the error, too
  if (tasks.some((one) => one.state === WAITS)) return { state: "failed", lines, result: ASKED_AGAIN };
  const result = state === "success" && task ? await returned(run, task, lines) : "";
  return { state, lines, result: state === "failed" ? error || "The run failed; see its log." : result };
}

// Looks at a run until it is over, and tells each time. Gives { ok, state, lines, result }: `result` is what the task
// returned, or the error that ended it.
export async function follow(run, tell, wanted) {
  for (;;) {
    try {
      const found = await look(run, wanted);
      if (OVER.includes(found.state)) return { ...found, ok: found.state === "success" };
      tell(found);
    } catch (error) {
      // Airflow may be busy, or start again, or ask for a login, while the run goes on.
      if (error.status >= 400 && error.status < 500 && error.status !== 401) throw error;
      tell({ trouble: `${error.message.replace(/\.$/, "")}. The run goes on.` });
    }
    await later();
  }
}

// The place where a run is shown: its state, which is read out, its log and a link to it.
// `start` triggers a DAG and follows it; `show` follows a run. Both give what `follow` gives, and do not throw.
export function runPanel() {
  const status = el("p", { role: "status" });
  const log = el("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Log of the task", hidden: true });
  const link = el("p", {});
  const say = (text, kind = "") => {
    put(status, text);
    status.className = kind;
  };
  const showLines = (lines) => {
    put(log, lines.join("\n"));
    log.hidden = !lines.length;
    log.scrollTop = log.scrollHeight;
  };
  async function guarded(work) {
    try {
      const found = await work();
      showLines(found.lines);
      say(found.ok ? found.result || "Done." : `Failed: ${found.result}`, found.ok ? "good" : "bad");
      return found;
    } catch (error) {
      say(error.message, "bad");
      return { ok: false, state: "", lines: [], result: error.message };
    }
  }
  function followed(run, wanted) {
    link.replaceChildren(airflowLink(path("dags", run.dag, "runs", run.id), "The run in Airflow"));
    const tell = ({ state, lines, trouble }) => {
      say(trouble ?? (state === "queued" ? "Waiting for Airflow to start the run…" : "Running…"), trouble ? "bad" : "");
      if (lines) showLines(lines);
    };
    return follow(run, tell, wanted);
  }
  return {
    element: el("div", { class: "run" }, status, log, link),
    say,
    show: (run, wanted) => guarded(() => followed(run, wanted)),
    start: (dag, conf, wanted) => guarded(async () => {
      say("Starting…");
      showLines([]);
      return followed(await trigger(dag, conf), wanted);
    }),
  };
}

// A dialog that asks, then does and shows it. `act` gets the form's values and the panel, and gives { ok }; what failed
// may be tried again. `kind`: "danger" of what cannot be taken back.
export function actDialog(title, label, about, act, kind = "go") {
  return openDialog(title, (close) => {
    const panel = runPanel();
    const go = el("button", { type: "submit", class: kind }, label);
    const cancel = el("button", { type: "button", onclick: close }, "Cancel");
    const fields = el("fieldset", { "aria-label": title }, ...about);
    const form = el("form", {}, fields, panel.element, el("p", { class: "actions end" }, cancel, go));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const values = Object.fromEntries(new FormData(form));
      fields.disabled = go.disabled = true;
      put(cancel, "Close");
      cancel.focus();
      const { ok } = await act(values, panel);
      fields.disabled = go.disabled = ok;
    });
    return [form];
  });
}
