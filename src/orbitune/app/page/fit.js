// Start a fit, and watch its ranges move.

import { attempt, byId, checkSize, element, get, post, postFile } from "./ask.js";

const POLL = 1500; // milliseconds
const ZIP = "a zip from this computer …", PATH = "a path on this machine …";

let limits, known = -1, timer = null, current = null, openRun;

export function prepareForm(state, open) {
  limits = state.limits;
  openRun = open;
  byId("data").replaceChildren(...[...state.datasets, ZIP, PATH].map((name) => element("option", { textContent: name })));
  if (state.datasets.includes("rotated-digits")) byId("data").value = "rotated-digits";
  byId("budget").replaceChildren(...Object.entries(state.budgets).map(([value, about]) => element("option", { value, textContent: about })));
  byId("budget").value = "laptop";
  byId("transformations").replaceChildren(...state.transformations.map(({ name, title }) =>
    element("label", {}, element("input", { type: "checkbox", value: name, checked: true }), title)));
  byId("data").addEventListener("change", showFields);
  showFields();
}

function showFields() {
  const kind = { [ZIP]: "zip", [PATH]: "path" }[byId("data").value];
  for (const field of document.querySelectorAll("[data-for]")) field.hidden = !field.dataset.for.split(" ").includes(kind);
}

const wholeNumber = (id) => (byId(id).value === "" ? null : Number(byId(id).value));

async function source() {
  const chosen = byId("data").value;
  if (chosen === PATH) return byId("path").value;
  if (chosen !== ZIP) return chosen;
  const file = byId("zip").files[0];
  if (!file) throw new Error("Choose a zip file first.");
  checkSize(file, limits.zip);
  byId("fit-note").textContent = "Sending and unpacking …";
  const query = new URLSearchParams({ name: file.name, side: byId("side").value });
  const { data, about } = await postFile(`/api/upload?${query}`, file);
  byId("fit-note").textContent = about;
  return data;
}

byId("fit-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("start").disabled = true;
  byId("fit-note").textContent = "";
  const started = await attempt(byId("fit-error"), async () => {
    const orbit = [...document.querySelectorAll("#transformations input:checked")].map((box) => box.value);
    const data = await source();
    known = -1;
    const resize = byId("side").closest("label").hidden ? null : wholeNumber("side");
    show(await post("/api/fit", { data, budget: byId("budget").value, train_size: wholeNumber("train-size"), resize, orbit }));
  });
  if (!started) {
    byId("fit-note").textContent = "";
    byId("start").disabled = false;
  }
});

for (const [id, path] of [["stop", "/api/fit/stop"], ["resume", "/api/fit/resume"]]) {
  byId(id).addEventListener("click", () => attempt(byId("fit-error"), async () => { known = -1; show(await post(path)); }));
}
byId("open-fit").addEventListener("click", () => attempt(byId("fit-error"), () => openRun(current.directory)));

export async function watchFit() {
  show(await get(`/api/fit?known=${known}`));
}

function show(fit) {
  current = fit;
  clearTimeout(timer);
  byId("fit").hidden = !fit.status;
  const active = fit.status === "running" || fit.status === "stopping";
  byId("start").disabled = active;
  if (!fit.status) return;
  byId("fit-name").textContent = fit.name;
  byId("fit-status").textContent = `${fit.status} · ${fit.data} · ${Math.round(fit.seconds)} s`;
  byId("fit-verdict").textContent = fit.verdict && (fit.status === "finished" ? fit.verdict : `So far: ${fit.verdict}`);
  byId("fit-message").textContent = fit.status === "failed" ? `It failed: ${fit.message}` : fit.message || (active ? "Starting …" : "");
  byId("fit-message").className = fit.status === "failed" ? "sentence error" : "caption";
  byId("stop").hidden = !active;
  byId("stop").disabled = fit.status === "stopping";
  byId("resume").hidden = fit.status !== "stopped";
  byId("open-fit").hidden = fit.status !== "finished";
  if (fit.ranges) {
    known = fit.num_measured;
    byId("fit-ranges").replaceChildren(...fit.ranges.map(card));
  }
  if (active) timer = setTimeout(poll, document.hidden ? 10 * POLL : POLL);
}

async function poll() {
  if (!(await attempt(byId("fit-error"), watchFit))) timer = setTimeout(poll, 4 * POLL);
}

function card({ title, span, status, harmless, chart }) {
  const heading = element("h3", { textContent: title }, element("span", { className: `status ${harmless ? "yes" : "no"}`, textContent: status }));
  const made = element("article", { className: "card" }, heading, element("p", { className: "span", textContent: span }));
  // A drawing made by the server from numbers alone; the page's policy runs no script in it.
  if (chart) made.insertAdjacentHTML("beforeend", chart);
  return made;
}
