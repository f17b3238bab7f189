"use strict";
// Engines as lanes, instructions as boxes, what orders them as arrows; and the bytes that racing accesses share.

const LANE = 46, TOP = 22, LABEL = 90;

class Timeline {
  constructor(data) {
    this.data = data;
    this.watchers = [];
    this.lanes = data.engines.map(() => []);
    data.engine.forEach((engine, index) => this.lanes[engine].push(index));
    for (const lane of this.lanes) lane.sort((a, b) => data.at[a] - data.at[b] || a - b);
    this.length = data.at.reduce((a, b) => Math.max(a, b), 0) + 1;
    this.edgesOf = new Map();
    data.edges.forEach(([source, target]) => { for (const end of [source, target]) { if (!this.edgesOf.has(end)) this.edgesOf.set(end, []); this.edgesOf.get(end).push([source, target]); } });
    this.race = data.races.length ? 0 : -1;
    this.cursor = this.race >= 0 ? data.races[0].first : 0;
    this.query = "";
    this.width = 800;
    this.whole();
  }
  whole() { this.left = 0; this.scale = Math.min(120, (this.width - LABEL) / this.length); this.changed(); }
  zoom(factor, at = this.data.at[this.cursor]) {
    const least = Math.min(120, (this.width - LABEL) / this.length);
    const scale = Math.max(least, Math.min(120, this.scale * factor));
    this.left = at - (at - this.left) * this.scale / scale;
    this.scale = scale; this.clamp(); this.changed();
  }
  pan(steps) { this.left += steps; this.clamp(); this.changed(); }
  clamp() { this.left = Math.max(0, Math.min(this.left, this.length - (this.width - LABEL) / this.scale)); }
  x(at) { return LABEL + (at - this.left) * this.scale; }
  show(index, scale = 90) {
    this.cursor = index;
    this.scale = Math.min(120, Math.max(scale, (this.width - LABEL) / this.length));
    this.left = this.data.at[index] - (this.width - LABEL) / this.scale / 2;
    this.clamp(); this.changed();
  }
  step(delta) {
    const lane = this.lanes[this.data.engine[this.cursor]];
    this.go(lane[Math.max(0, Math.min(lane.length - 1, lane.indexOf(this.cursor) + delta))]);
  }
  lane(delta) {
    const engine = this.data.engine[this.cursor] + delta;
    if (engine >= 0 && engine < this.lanes.length && this.lanes[engine].length) this.go(this.near(engine, this.data.at[this.cursor]));
  }
  go(index) {
    this.cursor = index;
    const x = this.x(this.data.at[index]);
    if (x < LABEL || x + this.scale > this.width) this.left = this.data.at[index] - (this.width - LABEL) / this.scale / 2;
    this.clamp(); this.changed();
  }
  near(engine, at) {
    const lane = this.lanes[engine];
    let low = 0, high = lane.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (this.data.at[lane[middle]] < at) low = middle + 1; else high = middle; }
    return lane[low];
  }
  matches(index) {
    const { names, opcodes, opcode } = this.data;
    return this.query && `${names[index]} ${opcodes[opcode[index]]}`.toLowerCase().includes(this.query);
  }
  find(text) {
    this.query = text.toLowerCase();
    const found = this.query ? this.data.names.findIndex((_, index) => this.matches(index)) : -1;
    if (found >= 0) this.show(found, Math.max(this.scale, 30)); else this.changed();
    return found;
  }
  changed() { for (const watcher of this.watchers) watcher(); }
}

function windows(view) {
  // On each racing engine, where the two accesses may overlap: after what is known to be complete, before what waits.
  const race = view.data.races[view.race], { at, engine } = view.data;
  return [
    [engine[race.first], race.after >= 0 ? at[race.after] + 1 : 0, view.length],
    [engine[race.second], at[race.second], race.until >= 0 ? at[race.until] : view.length],
  ];
}

function paintTimeline(canvas, view) {
  const ratio = window.devicePixelRatio || 1, data = view.data;
  view.width = Math.max(200, canvas.clientWidth);
  canvas.width = view.width * ratio; canvas.height = canvas.clientHeight * ratio;
  const context = canvas.getContext("2d"), style = getComputedStyle(document.body);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "12px ui-monospace, monospace"; context.textBaseline = "middle";
  const y = (engine) => TOP + engine * LANE;
  const racing = view.race >= 0 ? [data.races[view.race].first, data.races[view.race].second] : [];
  if (racing.length) {
    context.fillStyle = "rgba(205,30,30,0.16)";
    for (const [engine, from, to] of windows(view)) context.fillRect(Math.max(LABEL, view.x(from)), y(engine) - 4, Math.max(2, view.x(to) - Math.max(LABEL, view.x(from))), LANE - 6);
  }
  const first = view.left - 1, last = view.left + (view.width - LABEL) / view.scale + 1;
  view.lanes.forEach((lane, engine) => {
    let drawn = -1;
    for (let at = lane.length ? lane.indexOf(view.near(engine, first)) : 0; at < lane.length; at++) {
      const index = lane[at];
      if (data.at[index] > last) break;
      const left = Math.max(LABEL, view.x(data.at[index])), wide = Math.max(1, view.scale - (view.scale > 6 ? 2 : 0));
      const marked = racing.includes(index) || view.matches(index) || index === view.cursor;
      if (!marked && Math.floor(left) === drawn) continue;
      drawn = Math.floor(left);
      if (view.x(data.at[index]) + wide < LABEL) continue;
      context.fillStyle = racing.includes(index) ? "rgb(205,30,30)" : view.matches(index) ? "rgb(210,150,20)" : `hsl(${data.opcode[index] * 47 + 200} 45% 62%)`;
      context.fillRect(left, y(engine), marked ? Math.max(3, wide) : wide, LANE - 16);
      if (view.scale > 40) { context.fillStyle = "#10131a"; context.fillText(data.names[index].slice(0, view.scale / 7.5), left + 3, y(engine) + (LANE - 16) / 2); }
    }
  });
  const edges = view.scale > 12 ? data.edges.filter(([s, t]) => data.at[t] >= first && data.at[s] <= last) : (view.edgesOf.get(view.cursor) || []);
  context.strokeStyle = style.color; context.lineWidth = 1;
  for (const [source, target] of edges.slice(0, 3000)) {
    const from = [view.x(data.at[source] + 1) - 2, y(data.engine[source]) + (LANE - 16) / 2], to = [view.x(data.at[target]), y(data.engine[target]) + (LANE - 16) / 2];
    if (from[0] < LABEL || to[0] < LABEL) continue;
    context.beginPath(); context.moveTo(...from); context.lineTo(...to);
    context.lineTo(to[0] - 6, to[1] + (to[1] > from[1] ? -5 : 5)); context.stroke();
  }
  context.strokeStyle = style.color; context.lineWidth = 2;
  if (view.x(data.at[view.cursor]) >= LABEL - 1) context.strokeRect(view.x(data.at[view.cursor]), y(data.engine[view.cursor]), Math.max(4, view.scale - 2), LANE - 16);
  context.fillStyle = style.color;
  data.engines.forEach((name, engine) => context.fillText(name.slice(0, 12), 4, y(engine) + (LANE - 16) / 2));
}

function sideFill(context, side) {
  // The second side is hatched, so that the first one shows through where they meet.
  if (!side) return "rgba(60,110,200,0.7)";
  const tile = document.createElement("canvas"); tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.strokeStyle = "rgb(225,150,20)"; pen.lineWidth = 3;
  pen.beginPath(); for (const shift of [-8, 0, 8]) { pen.moveTo(shift, 8); pen.lineTo(shift + 8, 0); } pen.stroke();
  return context.createPattern(tile, "repeat");
}

function paintBytes(canvas, race) {
  const ratio = window.devicePixelRatio || 1, width = Math.max(100, canvas.clientWidth), height = canvas.clientHeight;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const all = race.bytes.flat();
  if (!all.length) return;
  const low = Math.min(...all.flatMap((r) => r.bytes.map((b) => b[0]))), high = Math.max(...all.flatMap((r) => r.bytes.map((b) => b[1])));
  const bottom = Math.max(...all.flatMap((r) => r.partitions.map((p) => p[1])));
  const x = (byte) => (byte - low) / (high - low) * width, y = (partition) => partition / bottom * height;
  race.bytes.forEach((rectangles, side) => {
    context.fillStyle = sideFill(context, side);
    for (const { partitions, bytes } of rectangles) for (const [p0, p1] of partitions) for (const [b0, b1] of bytes) context.fillRect(x(b0), y(p0), Math.max(1, x(b1) - x(b0)), Math.max(1, y(p1) - y(p0)));
  });
  if (race.byte !== null) {
    context.strokeStyle = "rgb(205,30,30)"; context.lineWidth = 3;
    context.strokeRect(x(race.byte) - 3, y(race.partition || 0) - 3 + 3, 8, 8);
  }
}

function timelineSection(data) {
  const section = document.createElement("section"); section.className = "timeline";
  section.append(element("h3", "Engines over time, each instruction one step long"));
  const view = new Timeline(data), bar = element("div", "", "tools");
  const button = (name, action) => { const made = element("button", name); made.type = "button"; made.onclick = action; bar.append(made); };
  button("Whole program", () => view.whole());
  button("Zoom in", () => view.zoom(1.6));
  button("Zoom out", () => view.zoom(1 / 1.6));
  const search = document.createElement("input"); search.type = "search"; search.placeholder = "instruction or opcode"; search.style.width = "14rem";
  search.setAttribute("aria-label", "Find an instruction or an opcode");
  search.addEventListener("input", () => view.find(search.value));
  bar.append(search);
  section.append(bar);
  const races = element("div", "", "tools");
  data.races.forEach((race, at) => {
    const made = element("button", `${race.type} ${data.names[race.first]} / ${data.names[race.second]}`);
    made.type = "button"; made.onclick = () => { view.race = at; view.show(race.first); };
    races.append(made);
  });
  section.append(races);
  const canvas = document.createElement("canvas");
  canvas.style.height = `${TOP + data.engines.length * LANE}px`;
  canvas.tabIndex = 0; canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Timeline: left and right go along an engine, up and down change engine, plus and minus zoom, 0 shows all");
  const readout = element("p", "", "readout"); readout.setAttribute("aria-live", "polite");
  section.append(canvas, readout);
  const bytes = document.createElement("canvas"); bytes.style.height = "180px"; bytes.setAttribute("role", "img");
  const caption = element("p", "", "soft");
  if (data.races.length) section.append(caption, bytes);
  view.watchers.push(() => {
    paintTimeline(canvas, view);
    const index = view.cursor;
    readout.textContent = `${data.names[index]}: ${data.opcodes[data.opcode[index]]} on ${data.engines[data.engine[index]]}, step ${data.at[index]}`
      + (view.edgesOf.get(index) || []).map(([s, t]) => s === index ? `; ${data.names[t]} waits for it` : `; waits for ${data.names[s]}`).slice(0, 6).join("");
    races.querySelectorAll("button").forEach((made, at) => made.setAttribute("aria-pressed", String(at === view.race)));
    if (view.race >= 0) {
      const race = data.races[view.race];
      caption.textContent = `${race.buffer}: partitions downwards, bytes to the right; ${data.names[race.first]} blue, ${data.names[race.second]} hatched amber, the shared byte ${race.byte} red`;
      bytes.setAttribute("aria-label", caption.textContent);
      paintBytes(bytes, race);
    }
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") view.step(-1); else if (event.key === "ArrowRight") view.step(1);
    else if (event.key === "ArrowUp") view.lane(-1); else if (event.key === "ArrowDown") view.lane(1);
    else if (event.key === "+" || event.key === "=") view.zoom(1.6); else if (event.key === "-") view.zoom(1 / 1.6);
    else if (event.key === "0") view.whole(); else return;
    event.preventDefault();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey) view.pan(event.deltaY / view.scale);
    else view.zoom(event.deltaY < 0 ? 1.25 : 0.8, view.left + (event.offsetX - LABEL) / view.scale);
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = [event.offsetX, false]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || (!drag[1] && Math.abs(event.offsetX - drag[0]) < 4)) return;
    view.pan((drag[0] - event.offsetX) / view.scale); drag = [event.offsetX, true];
  });
  canvas.addEventListener("pointerup", (event) => {
    const engine = Math.floor((event.offsetY - TOP + 8) / LANE);
    if (drag && !drag[1] && engine >= 0 && engine < view.lanes.length && view.lanes[engine].length) {
      const at = view.left + (event.offsetX - LABEL) / view.scale, found = view.near(engine, Math.floor(at));
      if (Math.abs(data.at[found] - at) < 1 + 4 / view.scale) view.go(found);
    }
    drag = null;
  });
  section.view = view;
  requestAnimationFrame(() => { view.width = Math.max(200, canvas.clientWidth); if (view.race >= 0) view.show(data.races[0].first); else view.whole(); });
  return section;
}
