"use strict";
// A map of a tensor: each cell an element, coloured by the program that writes it. Several maps can share one view.

function runAt(runs, element) {
  let low = 0, high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle][1] <= element) low = middle + 1; else high = middle;
  }
  return low < runs.length && runs[low][0] <= element ? runs[low] : null;
}

function columnsOf(map) {
  // The innermost row of a matrix when it is one in memory, else something near a square.
  const stride = map.strides.length > 1 ? map.strides[map.strides.length - 2] : 0;
  if (stride > 1 && stride <= map.elements && map.strides[map.strides.length - 1] === 1) return stride;
  return Math.min(map.elements, 2 ** Math.ceil(Math.log2(Math.sqrt(map.elements) * 1.6)));
}

class View {
  // What part of the map is seen: `cell` pixels for an element, the top left corner, and the cursor.
  constructor(map) {
    this.map = map;
    this.columns = columnsOf(map);
    this.rows = Math.ceil(map.elements / this.columns);
    this.cursor = 0;
    this.watchers = [];
    this.width = 640; this.height = 260;
    this.whole();
  }
  whole() {
    this.cell = Math.min(48, this.width / this.columns, this.height / this.rows);
    this.left = 0; this.top = 0;
    this.changed();
  }
  zoom(factor, column = this.cursor % this.columns, row = Math.floor(this.cursor / this.columns)) {
    const least = Math.min(48, this.width / this.columns, this.height / this.rows);
    const cell = Math.max(least, Math.min(48, this.cell * factor));
    this.left = column - (column - this.left) * this.cell / cell;
    this.top = row - (row - this.top) * this.cell / cell;
    this.cell = cell;
    this.clamp(); this.changed();
  }
  show(element, cell = 24) {
    this.cursor = element;
    this.cell = cell;
    this.left = element % this.columns - this.width / cell / 2;
    this.top = Math.floor(element / this.columns) - this.height / cell / 2;
    this.clamp(); this.changed();
  }
  move(delta) {
    this.cursor = Math.max(0, Math.min(this.map.elements - 1, this.cursor + delta));
    const column = this.cursor % this.columns, row = Math.floor(this.cursor / this.columns);
    if (column < this.left) this.left = column;
    if (row < this.top) this.top = row;
    if (column + 1 > this.left + this.width / this.cell) this.left = column + 1 - this.width / this.cell;
    if (row + 1 > this.top + this.height / this.cell) this.top = row + 1 - this.height / this.cell;
    this.clamp(); this.changed();
  }
  pan(columns, rows) { this.left += columns; this.top += rows; this.clamp(); this.changed(); }
  clamp() {
    this.left = Math.max(0, Math.min(this.left, this.columns - this.width / this.cell));
    this.top = Math.max(0, Math.min(this.top, this.rows - this.height / this.cell));
  }
  elementAt(x, y) {
    const column = Math.floor(this.left + x / this.cell), row = Math.floor(this.top + y / this.cell);
    if (column < 0 || column >= this.columns || row < 0) return -1;
    const element = row * this.columns + column;
    return element < this.map.elements ? element : -1;
  }
  changed() { for (const watcher of this.watchers) watcher(); }
}

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const palette = () => darkScheme.matches
  ? { light: [0.3, 0.45], wrote: [85, 115, 215], loaded: [205, 222, 248] }
  : { light: [0.29, 0.21], wrote: [30, 55, 130], loaded: [90, 140, 215] };

function rgb(hue, saturation, lightness) {
  const a = saturation * Math.min(lightness, 1 - lightness);
  const f = (n) => { const k = (n + hue / 30) % 12; return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)))); };
  return [f(0), f(8), f(4)];
}

function luminance(colour) {
  // As WCAG 2 defines it.
  const [r, g, b] = colour.map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Neighbouring programs far apart in hue, none near the red of a race; each 3 to 1 or more against the ground and the stripes.
function ownerColour(owner) {
  const hue = 40 + (owner * 111.246 + 170) % 290, wanted = palette().light[owner % 2];
  let low = 0, high = 1;
  for (let step = 0; step < 16; step++) {
    const middle = (low + high) / 2;
    if (luminance(rgb(hue, 0.55, middle)) < wanted) low = middle; else high = middle;
  }
  return rgb(hue, 0.55, high);
}

const RACE = [110, 0, 0], SHARED = [40, 40, 40];
const STRIPES = 10;

function paintMap(canvas, view, colourOf, marked) {
  // `colourOf(element)` gives a colour and, where there are two things to say, the colour of stripes across it.
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, canvas.clientWidth), height = Math.max(1, canvas.clientHeight);
  canvas.width = width * ratio; canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = image.data, cell = view.cell * width / view.width;
  const rows = [], columns = [];
  for (let x = 0; x < canvas.width; x++) columns.push(Math.floor(view.left + x / ratio / cell));
  for (let y = 0; y < canvas.height; y++) rows.push(Math.floor(view.top + y / ratio / cell));
  const gap = cell >= 8;
  for (let y = 0; y < canvas.height; y++) {
    let last = -1, colours = null;
    for (let x = 0; x < canvas.width; x++) {
      if (columns[x] >= view.columns) break;
      const element = rows[y] * view.columns + columns[x];
      if (element >= view.map.elements) break;
      if (element !== last) { colours = colourOf(element); last = element; }
      if (!colours || (gap && (columns[x] !== columns[x - 1] || rows[y] !== rows[y - 1]))) continue;
      const at = 4 * (y * canvas.width + x), colour = colours[1] && (x + y) % (STRIPES * ratio) < STRIPES * ratio / 2 ? colours[1] : colours[0];
      pixels[at] = colour[0]; pixels[at + 1] = colour[1]; pixels[at + 2] = colour[2]; pixels[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(document.body), red = style.getPropertyValue("--races");
  // The cursor is inside of the frame of a racing element. Each has a rim of the ground's colour, to be seen on any other.
  const outer = cell < 16 ? -4 : 0, frames = [...marked.map((e) => [e, red, 3, outer]), [view.cursor, style.color, 2, outer + 4]];
  for (const [element, colour, wide, inset] of frames.flatMap(([e, c, w, i]) => [[e, style.backgroundColor, w + 2, i], [e, c, w, i]])) {
    const x = (element % view.columns - view.left) * cell, y = (Math.floor(element / view.columns) - view.top) * cell;
    const size = Math.max(cell, 7);
    if (x < -size || y < -size) continue;
    context.strokeStyle = colour; context.lineWidth = wide;
    context.strokeRect(x - (size - cell) / 2 + inset, y - (size - cell) / 2 + inset, size - 2 * inset, size - 2 * inset);
  }
}

function programName(number, grid) {
  if (!grid) return `program ${number}`;
  const x = number % grid[0], rest = Math.floor(number / grid[0]);
  return `program (${x}, ${rest % grid[1]}, ${Math.floor(rest / grid[1])})`;
}

function mapSection(map, grid, racing, races) {
  const section = document.createElement("section");
  section.className = "map";
  section.append(element("h3", `${map.tensor}: who writes which element`));
  const view = new View(map);
  section.append(element("p", `${map.dtype}[${map.shape.join(", ")}], strides (${map.strides.join(", ")}), `
    + `${map.elements} elements to the end of its storage, ${view.columns} in each row of the map`
    + `${map.complete ? "" : "; not all programs could be evaluated"}`, "soft"));
  const readout = element("p", "", "readout"); readout.setAttribute("aria-live", "polite");
  const whole = document.createElement("canvas");
  whole.style.height = "260px";
  section.append(tools(view, racing), legend(races), whole, readout);
  const colours = new Map(), { wrote, loaded } = palette();
  const owned = (e) => {
    const run = runAt(map.owners, e);
    if (run && !colours.has(run[2])) colours.set(run[2], ownerColour(run[2]));
    return run && [colours.get(run[2]), runAt(map.contested, e) && (races ? RACE : SHARED)];
  };
  watch(whole, view, owned, `Map of ${map.tensor}: arrow keys move the cursor, plus and minus zoom, 0 shows the whole tensor`, racing);
  const pair = element("div", "", "pair"), names = map.programs.map((p) => `program (${p.program.join(", ")})`);
  let chosen = [0, 1].filter((at) => at < names.length);
  const boxes = chosen.map((_, side) => {
    const box = document.createElement("div"), canvas = document.createElement("canvas"), title = element("p");
    canvas.style.height = "200px";
    box.append(title, canvas); pair.append(box);
    const touched = (e) => {
      const program = map.programs[chosen[side]];
      if (!program) return null;
      const writes = runAt(program.written, e), reads = runAt(program.read, e);
      return writes ? [wrote, reads && loaded] : reads ? [loaded, null] : null;
    };
    watch(canvas, view, touched, "", racing);
    return { box, canvas, title };
  });
  if (boxes.length) section.append(element("h4", "What the racing programs touch"), programLegend(), pair);
  section.choose = (actors) => {
    // The footprints of the programs of one race, side by side; of a race inside one program, its own alone.
    const found = [...new Set(actors)].map((name) => names.indexOf(name)).filter((at) => at >= 0);
    if (found.length) chosen = found;
    boxes.forEach(({ box, canvas, title }, side) => {
      box.hidden = side >= chosen.length;
      title.textContent = names[chosen[side]] || "";
      canvas.setAttribute("aria-label", `What ${title.textContent} touches of ${map.tensor}`);
    });
    view.changed();
  };
  view.watchers.push(() => { readout.textContent = describe(map, view.cursor, grid, racing); });
  section.view = view;
  section.choose([]);
  requestAnimationFrame(() => racing.length ? view.show(racing[0], Math.max(view.cell, 6)) : view.changed());
  return section;
}

function watch(canvas, view, colourOf, label, racing) {
  canvas.tabIndex = 0; canvas.setAttribute("role", "application"); canvas.setAttribute("aria-label", label);
  const scale = () => view.width / Math.max(1, canvas.clientWidth);
  view.watchers.push(() => paintMap(canvas, view, colourOf, racing));
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -view.columns, ArrowDown: view.columns };
    if (event.key in moves) view.move(moves[event.key]);
    else if (event.key === "+" || event.key === "=") view.zoom(1.6);
    else if (event.key === "-") view.zoom(1 / 1.6);
    else if (event.key === "0") view.whole();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const x = event.offsetX * scale(), y = event.offsetY * scale();
    view.zoom(event.deltaY < 0 ? 1.25 : 0.8, view.left + x / view.cell, view.top + y / view.cell);
  }, { passive: false });
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = [event.offsetX, event.offsetY, false]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const dx = event.offsetX - drag[0], dy = event.offsetY - drag[1];
    if (!drag[2] && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag = [event.offsetX, event.offsetY, true];
    view.pan(-dx * scale() / view.cell, -dy * scale() / view.cell);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag[2]) {
      const found = view.elementAt(event.offsetX * scale(), event.offsetY * scale());
      if (found >= 0) { view.cursor = found; view.changed(); }
    }
    drag = null;
  });
}

function tools(view, racing) {
  const bar = element("div", "", "tools");
  const add = (name, action) => { const button = element("button", name); button.type = "button"; button.onclick = action; bar.append(button); };
  add("Whole tensor", () => view.whole());
  add("Zoom in", () => view.zoom(1.6));
  add("Zoom out", () => view.zoom(1 / 1.6));
  if (racing.length) add("Racing element", () => view.show(racing[0]));
  return bar;
}

function explained(line, entries) {
  // Appends what colours stand for: [colour, words] each.
  for (const [colour, words] of entries) {
    const entry = element("span", "", "entry"), box = element("span", "", "swatch");
    box.style.background = colour;
    entry.append(box, document.createTextNode(words)); line.append(entry);
  }
  return line;
}

function striped(one, other) { return `repeating-linear-gradient(135deg, ${one} 0 3px, ${other} 3px 6px)`; }

function legend(races) {
  const first = `rgb(${ownerColour(0)})`, contested = striped(`rgb(${races ? RACE : SHARED})`, first);
  return explained(element("p", "", "soft legend"), [[first, "one program, a colour each"], [contested, "several programs"], ["transparent", "nobody"]]);
}

function programLegend() {
  const wrote = `rgb(${palette().wrote})`, loaded = `rgb(${palette().loaded})`;
  return explained(element("p", "", "soft legend"), [[wrote, "written"], [loaded, "read"], [striped(loaded, wrote), "both"]]);
}

function coordinates(map, at) {
  // The index of an element in a tensor whose strides fall, or "" where it is no such index.
  if (map.shape.length < 2) return "";
  let rest = at;
  const index = [];
  for (let axis = 0; axis < map.shape.length; axis++) {
    const stride = map.strides[axis];
    if (stride <= 0 || (axis && stride > map.strides[axis - 1])) return "";
    index.push(Math.floor(rest / stride)); rest %= stride;
    if (index[axis] >= map.shape[axis]) return "";
  }
  return rest ? "" : ` at [${index.join(", ")}]`;
}

function describe(map, at, grid, racing) {
  const run = runAt(map.owners, at);
  const who = !run ? "written by no program" : runAt(map.contested, at) ? "written by several programs" : `written by ${programName(run[2], grid)}`;
  const touched = map.programs.map((p) => {
    const does = [runAt(p.written, at) && "writes", runAt(p.read, at) && "reads"].filter(Boolean).join(" and ");
    return does ? `program (${p.program.join(", ")}) ${does} it` : "";
  }).filter(Boolean);
  const race = racing.includes(at) ? ", the racing element" : "";
  return `${map.tensor}[${at}]${coordinates(map, at)}${race}: ${who}${touched.length ? "; " + touched.join("; ") : ""}`;
}
