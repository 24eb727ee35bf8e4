// An image, sliders along its orbit, and what the model says.

import { attempt, byId, checkSize, element, post, postFile } from "./ask.js";
import { Sketch } from "./sketch.js";

const MOST_CLASSES = 12; // more bars than these are not looked at
const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 0 : 1)} %`;

let run, limits, image, sliders = [], seed = 0;

export function showRun(opened, sizes) {
  run = opened;
  limits = sizes;
  document.title = `${run.name} – Orbitune`;
  byId("run-name").textContent = run.name;
  byId("headline").textContent = run.headline;
  byId("details").textContent = run.details;
  byId("explore").hidden = false;
  byId("explore-error").hidden = true;
  for (const id of ["moved", "draws"]) byId(id).classList.toggle("pixels", Math.max(run.shape[1], run.shape[2]) <= 96);
  byId("upload-caption").textContent = `${run.squeezes ? "Squeezed" : "Scaled"} to ${run.shape[2]} × ${run.shape[1]} pixels${run.squeezes ? ", as were those the model learned from" : "; what sticks out is cut off"}. It stays on this machine.`;
  byId("orbit-caption").textContent = run.parameters.length
    ? `${run.num_draws} draws. To the model all of them are the same thing; its answer is an average over ${run.orbit_size} such draws.`
    : "This model has no orbit: it takes every image as it is.";
  makeSliders();
  makeExamples();
  sketch.prepare(run.shape, run.sketch);
  byId("image-file").value = "";
  if (run.examples.length) {
    showPanel("examples");
    choose(0);
  } else {
    byId("examples").textContent = "This run has kept no images.";
    showPanel("sketch");
    useSketch();
  }
}

// --- where the image comes from

const sketch = new Sketch(() => useSketch());

function makeExamples() {
  byId("examples").replaceChildren(...run.examples.map(({ image, label }, index) => {
    const button = element("button", { type: "button", title: run.classes[label] }, element("img", { src: image, alt: run.classes[label], className: "pixels" }));
    button.addEventListener("click", () => choose(index));
    return button;
  }));
}

function choose(index) {
  [...byId("examples").children].forEach((button, i) => button.setAttribute("aria-pressed", i === index));
  image = run.examples[index].image;
  look();
}

function showPanel(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.setAttribute("aria-selected", tab.dataset.panel === name);
    byId(tab.dataset.panel).hidden = tab.dataset.panel !== name;
  }
}

const useSketch = latest(async () => {
  image = (await postFile("/api/image", await sketch.file())).image;
  look();
});

for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => showPanel(tab.dataset.panel));

byId("image-file").addEventListener("change", ({ target }) => {
  const file = target.files[0];
  if (file) attempt(byId("explore-error"), async () => {
    checkSize(file, limits.image);
    image = (await postFile("/api/image", file)).image;
    look();
  });
});

// --- sliders

function makeSliders() {
  sliders = run.parameters.map((parameter) => {
    const last = parameter.values.length - 1, far = parameter.values[last];
    const share = (value) => `${Math.min(100, Math.max(0, (50 * (value + far)) / far))}%`;
    const input = element("input", { type: "range", min: 0, max: last, step: 1, value: last / 2, id: `slider-${parameter.name}` });
    input.style.setProperty("--from", share(parameter.low));
    input.style.setProperty("--to", share(parameter.high));
    const output = element("output");
    const label = element("label", { className: "names", htmlFor: input.id }, element("b", { textContent: parameter.title }), output);
    const box = element("div", { className: "slider" }, label, input, element("small", { textContent: `${parameter.range}, ${parameter.status}` }));
    const slider = { parameter, input, value: () => parameter.values[input.value] };
    slider.show = () => {
      const value = slider.value(), beyond = value < parameter.low || value > parameter.high;
      // Zero is the image itself, wherever the range lies.
      box.classList.toggle("beyond", beyond && value !== 0);
      output.textContent = parameter.labels[input.value];
      input.setAttribute("aria-valuetext", output.textContent + (beyond ? ", beyond the learned range" : ""));
    };
    slider.set = (value) => { input.value = Math.round((last / 2) * (1 + value / far)); slider.show(); };
    input.addEventListener("input", () => { slider.show(); look(); });
    slider.show();
    slider.box = box;
    return slider;
  });
  byId("sliders").replaceChildren(...sliders.map((slider) => slider.box));
  byId("knobs").hidden = !sliders.length;
}

byId("reset").addEventListener("click", () => { sliders.forEach((slider) => slider.set(0)); look(); });
byId("dice").addEventListener("click", () => {
  for (const slider of sliders) {
    const { low, high } = slider.parameter;
    slider.set(low + (high - low) * Math.random());
  }
  look();
});
byId("again").addEventListener("click", () => { seed += 1; look(); });

// --- what the model says

const look = latest(async () => {
  const params = Object.fromEntries(sliders.map((slider) => [slider.parameter.name, slider.value()]));
  const answer = await post("/api/look", { run: run.directory, image, params, seed });
  byId("moved").src = answer.image;
  byId("draws").src = answer.draws;
  showBars(answer);
});

function showBars({ mean, low, high }) {
  const order = [...mean.keys()].sort((a, b) => mean[b] - mean[a]), best = order[0];
  const shown = mean.length <= MOST_CLASSES ? [...mean.keys()] : order.slice(0, MOST_CLASSES);
  byId("winner").textContent = `${run.classes[best]}, ${percent(mean[best])}` + (low ? ` (${percent(low[best])} to ${percent(high[best])})` : "");
  byId("bars").replaceChildren(...shown.flatMap((c) => {
    const fill = element("i", { className: "fill" }), track = element("span", { className: "track" }, fill);
    fill.style.width = `${100 * mean[c]}%`;
    if (low) {
      const band = element("i", { className: "band" });
      band.style.left = `${100 * low[c]}%`;
      band.style.width = `${100 * (high[c] - low[c])}%`;
      track.append(band);
    }
    const name = element("span", { className: c === best ? "name best" : "name", textContent: run.classes[c], title: run.classes[c] });
    return [name, track, element("span", { className: "percent", textContent: percent(mean[c]) })];
  }));
  byId("answer-caption").textContent = (low
    ? "Bars: probabilities, averaged over the orbit. Dark lines: where 90 % of what the Gaussian process deems possible lies."
    : "Bars: probabilities, averaged over the orbit. A network without a Gaussian process does not know how sure it is.") +
    (mean.length > MOST_CLASSES ? ` The ${MOST_CLASSES} most probable of ${mean.length} classes.` : "");
}

// Only one question at a time; of those that come meanwhile, the last.
function latest(action) {
  let busy = false, again = false;
  return async function start() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      await attempt(byId("explore-error"), action);
    } while (again);
    busy = false;
  };
}
