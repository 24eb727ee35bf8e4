// The page: what there is to begin with, and what happens when a run is opened.

import { attempt, byId, get, post } from "./ask.js";
import { showRun } from "./explore.js";
import { prepareForm, watchFit } from "./fit.js";

async function openRun(directory) {
  showRun(await post("/api/run", { directory }), state.limits);
  byId("explore").scrollIntoView({ behavior: "smooth" });
}

let state;
await attempt(byId("open-error"), async () => {
  state = await get("/api/state");
  byId("work").textContent = state.work;
  prepareForm(state, openRun);
  if (state.run) showRun(state.run, state.limits);
  await watchFit();
});

byId("open-form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(byId("open-error"), () => openRun(byId("directory").value));
});
document.documentElement.dataset.ready = "yes";
