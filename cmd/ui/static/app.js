"use strict";

// The page shows rows that the server streams, and sends actions to it. All text is set as text:
// nothing that an object or a cloud says becomes HTML.

const byId = (id) => document.getElementById(id);
const meta = (name) => document.querySelector(`meta[name="millwright-${name}"]`).content;
const canWrite = meta("mode") === "write";

const state = {
  rows: new Map(), // row by id
  order: [], // ids
  elements: new Map(), // table row by id
  closed: new Set(), // ids of rows whose children are hidden
  selected: null, // id
  filter: "",
  problems: { stream: "", action: "" },
};

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function age(time) {
  let seconds = Math.max(0, Math.round((Date.now() - new Date(time)) / 1000));
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60]]) {
    if (seconds >= 2 * size) return Math.floor(seconds / size) + unit;
  }
  return seconds + "s";
}

function tone(row) {
  if (row.kind === "Machine") {
    if (row.phase === "Failed") return "bad";
    return row.ready === "True" ? "good" : "wait";
  }
  const [has, wants] = row.ready.split("/").map(Number);
  return has >= wants ? "good" : "wait";
}

function progressOf(row) {
  const p = row.progress;
  const done = Math.min(p.updated, p.available);
  const words = `${p.available}/${p.replicas} available, ${p.updated} updated` + (p.outdated > 0 ? `, ${p.outdated} outdated` : "");
  const left = p.secondsLeft > 0 ? `, about ${Math.ceil(p.secondsLeft)}s left` : "";
  const bar = element("progress", { max: Math.max(p.replicas, 1), value: p.replicas === 0 ? 1 : done });
  bar.setAttribute("aria-label", `${row.name}: ${words}`);
  return [bar, " " + words + left + (row.paused ? ", paused" : "")];
}

function draw(row) {
  let tr = state.elements.get(row.id);
  if (!tr) {
    tr = element("tr");
    tr.dataset.id = row.id;
    tr.setAttribute("role", "row");
    state.elements.set(row.id, tr);
  }
  tr.className = row.kind === "MachineDeployment" ? "deployment" : "";
  tr.setAttribute("aria-level", row.level + 1);
  const toggle = element("span", { className: "toggle" });
  const name = element("td", {}, toggle, element("span", { className: "kind", textContent: row.kind + " " }),
    element("span", { className: "namespace", textContent: row.namespace + "/" }), row.name);
  tr.replaceChildren(
    name,
    element("td", { className: tone(row), textContent: row.ready }),
    element("td", { className: "state" }, ...(row.progress ? progressOf(row) : [row.phase || ""]),
      ...(row.why ? [element("div", { className: "why", textContent: row.why })] : [])),
    element("td", { textContent: row.node || "" }),
    element("td", { className: "age", textContent: age(row.created) }),
  );
}

function matches(row) {
  if (!state.filter) return true;
  return [row.kind, row.namespace, row.name, row.phase, row.node, row.why].join(" ").toLowerCase().includes(state.filter);
}

// arrange shows the rows that the filter and the closed ones leave, in their order.
function arrange() {
  const shown = new Set();
  for (const id of state.order) {
    const row = state.rows.get(id);
    if (!matches(row)) continue;
    for (let at = row; at; at = state.rows.get(at.parent)) shown.add(at.id);
  }
  const parents = new Set([...state.rows.values()].map((row) => row.parent));
  const isHidden = (row) => {
    if (state.filter) return !shown.has(row.id);
    for (let at = row.parent; at; at = state.rows.get(at)?.parent) if (state.closed.has(at)) return true;
    return false;
  };
  const body = byId("fleet").tBodies[0];
  let next = body.firstElementChild;
  for (const id of state.order) {
    const row = state.rows.get(id);
    const tr = state.elements.get(id);
    if (tr === next) next = next.nextElementSibling;
    else body.insertBefore(tr, next);
    tr.hidden = isHidden(row);
    tr.setAttribute("aria-selected", id === state.selected);
    const isParent = parents.has(id);
    tr.querySelector(".toggle").textContent = !isParent ? "" : state.closed.has(id) ? "▸" : "▾";
    if (isParent) tr.setAttribute("aria-expanded", !state.closed.has(id));
    else tr.removeAttribute("aria-expanded");
  }
  byId("empty").hidden = state.order.length > 0;
  document.body.classList.toggle("one-namespace", new Set([...state.rows.values()].map((row) => row.namespace)).size < 2);
}

function apply(delta) {
  for (const row of delta.rows || []) {
    // A set of size 0 is closed at first: it has no machines, or they go.
    if (!state.rows.has(row.id) && row.kind === "MachineSet" && row.ready.endsWith("/0")) state.closed.add(row.id);
    state.rows.set(row.id, row);
    draw(row);
  }
  for (const id of delta.gone || []) {
    state.rows.delete(id);
    state.elements.get(id).remove();
    state.elements.delete(id);
    state.closed.delete(id);
    if (state.selected === id) state.selected = null;
  }
  if (delta.order) state.order = delta.order;
  else if (delta.gone) state.order = state.order.filter((id) => state.rows.has(id));
  if (delta.rest) drawRest(delta.rest);
  arrange();
  drawSelected();
}

function drawRest({ summary, drivers, events }) {
  const phases = Object.entries(summary.phases).map(([phase, n]) => `${n} ${phase}`).join(", ");
  byId("summary").textContent = `${summary.machines} machines` + (phases ? ` (${phases})` : "") +
    ` · ${summary.joinsPerMinute.toFixed(1)} join and ${summary.leavesPerMinute.toFixed(1)} go a minute`;
  byId("drivers").replaceChildren(...drivers.map((d) => element("li", {},
    element("span", { className: d.ready ? "good" : "bad", textContent: d.ready ? "● " : "○ " }),
    `${d.name} ${d.version || ""}`, ...(d.why ? [element("br"), d.why] : []))));
  if (drivers.length === 0) byId("drivers").textContent = "The manager tells of none, or you may not read it.";
  byId("events").replaceChildren(...events.map((e) => element("li", {},
    element("span", { className: e.warning ? "bad" : "kind", textContent: `${age(e.time)} ${e.reason}` }),
    ` ${e.kind}/${e.name}${e.count > 1 ? ` ×${e.count}` : ""}`, element("br"), e.note)));
}

function drawSelected() {
  const row = state.rows.get(state.selected);
  byId("selected").textContent = row ? `${row.kind} ${row.namespace}/${row.name}` : "none";
  byId("why").textContent = row?.why || "";
  const actions = row && canWrite ? Object.entries(actionsOf(row)) : [];
  const wanted = actions.map(([name]) => name).join();
  if (byId("buttons").dataset.actions === wanted && wanted) return; // a button keeps its focus
  byId("buttons").dataset.actions = wanted;
  byId("buttons").replaceChildren(...actions.map(([name]) => element("button", { type: "button", textContent: name, onclick: () => ask(name) })));
}

function actionsOf(row) {
  const what = `${row.kind} ${row.namespace}/${row.name}`;
  const remove = { delete: `Delete ${what}` + (row.kind === "Machine" ? "? Its set makes another one." : " with all that it owns, VMs too?") };
  if (row.kind !== "MachineDeployment") return remove;
  const pause = row.paused ? { resume: `Resume the rollouts of ${what}?` } : { pause: `Pause the rollouts of ${what}? Scaling goes on.` };
  return { scale: `How many machines is ${what} to have?`, ...pause, restart: `Replace all machines of ${what}?`, ...remove };
}

// ask sends an action once the person has confirmed it.
function ask(action) {
  const row = state.rows.get(state.selected);
  const question = row && canWrite && actionsOf(row)[action];
  if (!question) return;
  const dialog = byId("ask");
  const isScale = action === "scale";
  byId("question").textContent = question;
  byId("number-label").hidden = !isScale;
  byId("number").required = isScale;
  byId("number").value = row.progress ? row.progress.replicas : 0;
  byId("yes").textContent = action;
  dialog.returnValue = "no";
  dialog.onclose = async () => {
    byId("fleet").focus();
    if (dialog.returnValue !== "yes") return;
    const { kind, namespace, name, uid } = row;
    const body = { kind, namespace, name, uid };
    if (isScale) body.replicas = byId("number").valueAsNumber;
    const answer = await fetch(`/actions/${action}`, {
      method: "POST", headers: { "Content-Type": "application/json", "X-Millwright-Form": meta("form") }, body: JSON.stringify(body),
    }).catch((error) => ({ ok: false, text: () => error.message }));
    const said = await answer.text();
    problem("action", answer.ok ? "" : `${action} ${name}: ${said}`);
  };
  dialog.showModal();
  (isScale ? byId("number") : byId("yes")).focus();
}

// problem shows what is wrong with the stream, or what became of the last action.
function problem(source, text) {
  state.problems[source] = text;
  byId("problem").textContent = state.problems.stream || state.problems.action;
  byId("problem").hidden = !byId("problem").textContent;
}

function select(id) {
  state.selected = id;
  arrange();
  drawSelected();
  state.elements.get(id)?.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const shown = state.order.filter((id) => !state.elements.get(id).hidden);
  const at = shown.indexOf(state.selected);
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1);
  if (shown.length > 0) select(shown[next]);
}

function fold(isClosed) {
  if (!state.selected) return;
  if (isClosed) state.closed.add(state.selected);
  else state.closed.delete(state.selected);
  arrange();
}

const keys = {
  ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
  PageDown: () => step(20), PageUp: () => step(-20), Home: () => step(-Infinity), End: () => step(Infinity),
  ArrowRight: () => fold(false), ArrowLeft: () => fold(true),
  Enter: () => fold(!state.closed.has(state.selected)),
  "/": () => byId("filter").focus(),
  s: () => ask("scale"), r: () => ask("restart"), Delete: () => ask("delete"),
  p: () => ask(state.rows.get(state.selected)?.paused ? "resume" : "pause"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("ask").open) return;
  if (event.key === "Escape") {
    byId("filter").value = state.filter = "";
    byId("fleet").focus();
    arrange();
    return;
  }
  if (event.target.matches("input") || (event.key === "Enter" && event.target.matches("button"))) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

byId("filter").addEventListener("input", (event) => {
  state.filter = event.target.value.trim().toLowerCase();
  arrange();
});

byId("fleet").addEventListener("click", (event) => {
  const tr = event.target.closest("tbody tr");
  if (!tr) return;
  select(tr.dataset.id);
  if (event.target.matches(".toggle")) fold(!state.closed.has(tr.dataset.id));
});

byId("mode").textContent = canWrite ? "read and write" : "read-only";
byId("write-keys").hidden = !canWrite;
setInterval(() => state.elements.forEach((tr, id) => { tr.querySelector(".age").textContent = age(state.rows.get(id).created); }), 5000);

const stream = new EventSource("/stream");
let isFirst = true;
stream.addEventListener("open", () => { isFirst = true; });
stream.addEventListener("delta", (event) => {
  problem("stream", "");
  const delta = JSON.parse(event.data) || {};
  // A new stream tells everything: what it does not name is gone.
  if (isFirst) delta.gone = [...state.rows.keys()].filter((id) => !(delta.order || []).includes(id));
  isFirst = false;
  apply(delta);
});
stream.addEventListener("problem", (event) => problem("stream", JSON.parse(event.data)));
stream.addEventListener("error", () => problem("stream", "The command that serves this page does not answer. Is it still running?"));
