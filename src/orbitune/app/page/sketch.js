// A sheet to draw on, with the proportions, the ground and the stroke of the examples.

import { byId } from "./ask.js";

const LONG_SIDE = 320;
const STROKE = 0.085; // of the longer side, about the pen of a handwritten digit

export class Sketch {
  constructor(changed) {
    this.canvas = byId("canvas");
    this.pen = this.canvas.getContext("2d");
    this.changed = changed;
    this.last = null;
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => this.end());
    byId("clear").addEventListener("click", () => { this.clear(); this.changed(); });
  }

  prepare([, height, width], { light, extent }) {
    const scale = LONG_SIDE / Math.max(height, width);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    [this.ground, this.ink] = light ? ["#000", "#fff"] : ["#fff", "#000"];
    const frame = byId("frame"), margin = `${(50 * (1 - extent)).toFixed(1)}%`;
    frame.hidden = extent > 0.95;
    frame.style.inset = `${margin} ${margin}`;
    byId("sketch-caption").textContent = `Scaled to ${width} × ${height} pixels.` +
      (extent > 0.95 ? "" : " The examples fill about the dashed frame.");
    this.clear();
  }

  clear() {
    this.pen.fillStyle = this.ground;
    this.pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
  }

  file() {
    return new Promise((done) => this.canvas.toBlob(done, "image/png"));
  }

  begin(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.last = this.position(event);
    this.move(event);
  }

  move(event) {
    if (!this.last) return;
    const next = this.position(event);
    Object.assign(this.pen, { strokeStyle: this.ink, lineCap: "round", lineJoin: "round", lineWidth: STROKE * LONG_SIDE });
    this.pen.beginPath();
    this.pen.moveTo(...this.last);
    this.pen.lineTo(...next);
    this.pen.stroke();
    this.last = next;
    this.changed();
  }

  end() {
    this.last = null;
  }

  position(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * this.canvas.width, ((event.clientY - box.top) / box.height) * this.canvas.height];
  }
}
