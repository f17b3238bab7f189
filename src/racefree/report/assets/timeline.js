"use strict";
// Engines as lanes, instructions as boxes, what orders them as arrows; and the bytes that racing accesses share.

const LANE = 46, TOP = 22, LABEL = 90, MOST_ARROWS = 3000;
const SIDES = ["rgb(70,125,215)", "rgb(200,120,0)"], BOTH = "rgb(190,75,110)", SHADE = "rgba(205,30,30,0.16)";

class Timeline {
  constructor(data) {
    this.data = data;
    this.watchers = [];
    this.lanes = data.engines.map(() => []);
    data.engine.forEach((engine, index) => this.lanes[engine].push(index));
    for (const lane of this.lanes) lane.sort((a, b) => data.at[a] - data.at[b] || a - b);
    this.length = data.at.reduce((a, b) => Math.max(a, b), 0) + 1;
    this.edgesOf = new Map();
    data.edges.forEach((edge) => { for (const end of edge) { if (!this.edgesOf.has(end)) this.edgesOf.set(end, []); this.edgesOf.get(end).push(edge); } });
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
    const engine = this.data.engine[this.cursor], lane = this.lanes[engine];
    let place = this.place(engine, this.data.at[this.cursor]);
    while (lane[place] !== this.cursor) place++;
    this.go(lane[Math.max(0, Math.min(lane.length - 1, place + delta))]);
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
  place(engine, at) {
    // The place in a lane of its first instruction at this step or later, of its last one if there is none.
    const lane = this.lanes[engine];
    let low = 0, high = lane.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (this.data.at[lane[middle]] < at) low = middle + 1; else high = middle; }
    return low;
  }
  near(engine, at) { return this.lanes[engine][this.place(engine, at)]; }
  arrows(first, last) {
    // The edges that touch a stretch of steps, for which the instructions of the stretch are enough.
    const found = new Set();
    this.lanes.forEach((lane, engine) => {
      if (!lane.length) return;
      for (let at = this.place(engine, first); at < lane.length && this.data.at[lane[at]] <= last; at++) {
        for (const edge of this.edgesOf.get(lane[at]) || []) found.add(edge);
        if (found.size > MOST_ARROWS) return;
      }
    });
    return [...found];
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
    context.fillStyle = SHADE;
    for (const [engine, from, to] of windows(view)) context.fillRect(Math.max(LABEL, view.x(from)), y(engine) - 4, Math.max(2, view.x(to) - Math.max(LABEL, view.x(from))), LANE - 6);
  }
  const first = view.left - 1, last = view.left + (view.width - LABEL) / view.scale + 1;
  view.lanes.forEach((lane, engine) => {
    let drawn = -1;
    // When many instructions share a pixel, one of each is looked at.
    const stride = Math.max(1, Math.floor(0.5 / view.scale));
    for (let at = lane.length ? view.place(engine, first) : 0; at < lane.length; at += stride) {
      const index = lane[at];
      if (data.at[index] > last) break;
      const left = Math.max(LABEL, view.x(data.at[index])), wide = Math.max(1, view.scale - (view.scale > 6 ? 2 : 0));
      const marked = racing.includes(index) || view.matches(index) || index === view.cursor;
      if (!marked && Math.floor(left) === drawn) continue;
      drawn = Math.floor(left);
      if (view.x(data.at[index]) + wide < LABEL) continue;
      context.fillStyle = racing.includes(index) ? "rgb(205,30,30)" : view.matches(index) ? "rgb(185,130,0)" : `hsl(${data.opcode[index] * 47 + 200} 45% 62%)`;
      context.fillRect(left, y(engine), marked ? Math.max(3, wide) : wide, LANE - 16);
      if (view.scale > 40) { context.fillStyle = racing.includes(index) ? "#ffffff" : "#10131a"; context.fillText(data.names[index].slice(0, view.scale / 7.5), left + 3, y(engine) + (LANE - 16) / 2); }
    }
  });
  for (const index of racing) {
    const left = Math.max(LABEL, view.x(data.at[index]));
    context.fillStyle = SIDES[racing.indexOf(index)];
    if (view.x(data.at[index]) + Math.max(1, view.scale) >= LABEL) context.fillRect(left, y(data.engine[index]) + LANE - 16, Math.max(3, view.scale - 2), 4);
  }
  const inside = (edge) => edge.every((end) => data.at[end] >= first && data.at[end] <= last);
  if (view.scale > 12) paintArrows(context, view, view.arrows(first, last).filter(inside), y, 0.45);
  paintArrows(context, view, view.edgesOf.get(view.cursor) || [], y, 1);
  context.strokeStyle = style.color; context.lineWidth = 2;
  if (view.x(data.at[view.cursor]) >= LABEL - 1) context.strokeRect(view.x(data.at[view.cursor]), y(data.engine[view.cursor]), Math.max(4, view.scale - 2), LANE - 16);
  context.fillStyle = style.color;
  data.engines.forEach((name, engine) => context.fillText(name.slice(0, 12), 4, y(engine) + (LANE - 16) / 2));
}

function paintArrows(context, view, edges, y, strength) {
  context.globalAlpha = strength;
  const { at, engine } = view.data, middle = (LANE - 16) / 2;
  context.strokeStyle = context.fillStyle = getComputedStyle(document.body).color; context.lineWidth = 1;
  for (const [source, target] of edges) {
    const down = engine[target] > engine[source] ? 1 : -1;
    const from = [view.x(at[source] + 1) - 2, y(engine[source]) + middle], to = [view.x(at[target]) + Math.min(6, view.scale / 4), y(engine[target]) + middle - down * middle];
    if (from[0] < LABEL || to[0] < LABEL) continue;
    const bend = (to[1] - from[1]) / 2;
    context.beginPath(); context.moveTo(...from); context.bezierCurveTo(from[0] + 8, from[1] + bend, to[0], to[1] - bend, ...to); context.stroke();
    context.beginPath(); context.moveTo(...to); context.lineTo(to[0] - 4, to[1] - down * 7); context.lineTo(to[0] + 4, to[1] - down * 7); context.fill();
  }
  context.globalAlpha = 1;
}

function boundsOf(race) {
  // [first byte, end, first partition, end] of what either side touches.
  const all = race.bytes.flat(), bytes = all.flatMap((r) => r.bytes).flat(), partitions = all.flatMap((r) => r.partitions).flat();
  const least = (list) => list.reduce((a, b) => Math.min(a, b)), most = (list) => list.reduce((a, b) => Math.max(a, b));
  return all.length ? [least(bytes), most(bytes), least(partitions), most(partitions)] : null;
}

function paintTouched(context, race, x, y) {
  // What one side touches alone, the other alone, and both: each side is drawn by itself, and the pixels are put together.
  const { width, height } = context.canvas, image = context.createImageData(width, height), matrix = context.getTransform();
  const colours = [...SIDES, BOTH].map((colour) => colour.match(/\d+/g).map(Number));
  const sides = race.bytes.map((rectangles) => {
    const own = document.createElement("canvas"); own.width = width; own.height = height;
    const pen = own.getContext("2d", { willReadFrequently: true });
    pen.setTransform(matrix);
    for (const { partitions, bytes } of rectangles) for (const [p0, p1] of partitions) for (const [b0, b1] of bytes) pen.fillRect(x(b0), y(p0), Math.max(1, x(b1) - x(b0)), Math.max(1, y(p1) - y(p0)));
    return pen.getImageData(0, 0, width, height).data;
  });
  for (let at = 0; at < image.data.length; at += 4) {
    const which = (sides[0][at + 3] > 127 ? 1 : 0) + (sides[1][at + 3] > 127 ? 2 : 0);
    if (!which) continue;
    image.data.set(colours[which - 1], at); image.data[at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

function paintBytes(canvas, race) {
  const ratio = window.devicePixelRatio || 1, width = Math.max(100, canvas.clientWidth), height = canvas.clientHeight;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const context = canvas.getContext("2d"), bounds = boundsOf(race), ink = getComputedStyle(document.body).color;
  if (!bounds) return;
  const [low, high, top, bottom] = bounds, margin = [52, 6, 22, 8];
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const x = (byte) => margin[0] + (byte - low) / (high - low) * (width - margin[0] - margin[3]);
  const y = (partition) => margin[1] + (partition - top) / (bottom - top) * (height - margin[1] - margin[2]);
  paintTouched(context, race, x, y);
  context.strokeStyle = context.fillStyle = ink; context.lineWidth = 1; context.font = "12px ui-monospace, monospace";
  context.strokeRect(x(low), y(top), x(high) - x(low), y(bottom) - y(top));
  context.textBaseline = "top";
  for (const [byte, align] of [[low, "left"], [Math.round((low + high) / 2), "center"], [high, "right"]]) { context.textAlign = align; context.fillText(String(byte), x(byte), height - margin[2] + 5); }
  context.textAlign = "right";
  context.fillText(String(top), margin[0] - 5, y(top)); context.textBaseline = "bottom"; context.fillText(String(bottom), margin[0] - 5, y(bottom));
  if (race.byte !== null) {
    const at = [x(race.byte), y(race.partition || 0)];
    for (const [colour, wide] of [[getComputedStyle(document.body).backgroundColor, 6], ["rgb(205,30,30)", 3]]) {
      context.strokeStyle = colour; context.lineWidth = wide;
      context.strokeRect(at[0] - 4, at[1] - 4, 10, 10);
    }
  }
}

function windowWords(view) {
  const race = view.data.races[view.race], { names, engine, engines } = view.data;
  const first = engines[engine[race.first]], second = engines[engine[race.second]];
  const before = race.after >= 0 ? `after ${names[race.after]}` : "from its start";
  const until = race.until >= 0 ? `until ${names[race.until]}, which starts only after ${names[race.first]}` : "to its end";
  return `Shaded: what may run at the same time. On ${first} ${before}, since no more of it is known to be complete when ${names[race.second]} starts; on ${second} from ${names[race.second]} ${until}.`;
}

function timelineLegend(data) {
  const line = element("p", "", "soft legend");
  const racing = data.races.length ? [["rgb(205,30,30)", "the racing pair"], [SHADE, "may run at the same time"]] : [];
  explained(line, [...racing, ["rgb(185,130,0)", "found by the search"]]);
  line.append(document.createTextNode("; an arrow leads to what starts only after it"));
  if (data.left_out) line.append(document.createTextNode(`; ${data.left_out} of the arrows are left out`));
  return line;
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
  canvas.tabIndex = 0; canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "Timeline: left and right go along an engine, up and down change engine, plus and minus zoom, 0 shows all");
  const readout = element("p", "", "readout"); readout.setAttribute("aria-live", "polite");
  section.append(timelineLegend(data), canvas, readout);
  const bytes = document.createElement("canvas"); bytes.style.height = "220px"; bytes.setAttribute("role", "img");
  const caption = element("p", "", "soft"), shaded = element("p", "", "soft window"), key = element("p", "", "soft legend");
  if (data.races.length) section.append(shaded, element("h4", "The bytes that both touch"), caption, key, bytes);
  let drawn = -1;
  window.addEventListener("resize", () => { drawn = -1; });
  view.watchers.push(() => {
    paintTimeline(canvas, view);
    const index = view.cursor;
    readout.textContent = `${data.names[index]}: ${data.opcodes[data.opcode[index]]} on ${data.engines[data.engine[index]]}, step ${data.at[index]}`
      + (view.edgesOf.get(index) || []).map(([s, t]) => s === index ? `; ${data.names[t]} waits for it` : `; waits for ${data.names[s]}`).slice(0, 6).join("");
    races.querySelectorAll("button").forEach((made, at) => made.setAttribute("aria-pressed", String(at === view.race)));
    if (view.race >= 0) {
      const race = data.races[view.race];
      if (view.race !== drawn) {
        drawn = view.race;
        shaded.textContent = windowWords(view);
        const at = `${race.partition === null ? "" : `partition ${race.partition}, `}byte ${race.byte}`;
        caption.textContent = `${race.buffer}: partitions downwards, bytes to the right; the red frame is ${at}, which both touch`;
        bytes.setAttribute("aria-label", caption.textContent);
        key.replaceChildren();
        const alone = [race.first, race.second].map((index, side) => [SIDES[side], `${data.names[index]} alone, ${data.opcodes[data.opcode[index]]}`]);
        explained(key, [...alone, [BOTH, "both"]]);
        paintBytes(bytes, race);
      }
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
