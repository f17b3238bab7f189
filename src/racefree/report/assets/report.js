"use strict";
// Lists what was checked and shows one of them at a time.

function element(tag, words = "", kind = "") {
  const made = document.createElement(tag);
  if (words) made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

const report = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("subjects"), detail = document.getElementById("detail");
let chosen = 0;
const words = { races: "races", unsupported: "not analysed", vacuous: "vacuous", allowed: "races allowed", ok: "proved race-free" };

for (const note of report.notes) document.getElementById("notes").append(element("li", note));

function gridOf(subject) {
  // Tells launches of one line apart.
  const sizes = subject.grid ? [...subject.grid] : [];
  while (sizes.length > 1 && sizes[sizes.length - 1] === 1) sizes.pop();
  return sizes.length ? ` grid ${sizes.join("\u00d7")}` : "";
}

const entries = report.subjects.map((subject, index) => {
  const item = element("li"), button = element("button");
  button.type = "button";
  button.append(element("span", words[subject.status], `status ${subject.status}`), document.createTextNode(` ${subject.name}`));
  button.append(element("span", ` ${subject.origin || subject.place}${gridOf(subject)}${subject.repeats > 1 ? ` x${subject.repeats}` : ""}`, "soft"));
  button.onclick = () => {
    show(index);
    const top = detail.getBoundingClientRect().top;
    if (top < 0 || top > window.innerHeight * 0.6) detail.scrollIntoView();
  };
  item.append(button); list.append(item);
  const haystack = [subject.name, subject.place, subject.origin, words[subject.status], subject.kind, ...subject.details, ...subject.allowed, ...subject.gaps.flatMap((g) => [g.kind, g.reason]),
    ...subject.findings.flatMap((f) => [f.rule, f.title, f.reason, ...f.sides.flatMap((s) => [s.said, s.where])])].join("\n").toLowerCase();
  return { item, button, haystack };
});

function filter() {
  const wanted = document.getElementById("filter").value.toLowerCase();
  let seen = 0;
  for (const entry of entries) { entry.item.hidden = !entry.haystack.includes(wanted); seen += !entry.item.hidden; }
  document.getElementById("shown").textContent = `${seen} of ${entries.length} shown`;
}
document.getElementById("filter").addEventListener("input", filter);

function source(side) {
  const block = element("pre");
  block.tabIndex = 0; block.setAttribute("role", "region"); block.setAttribute("aria-label", `Source at ${side.where}`);
  for (const [number, line] of side.source) {
    const hit = number === side.line, row = element("span", "", hit ? "row hit" : "row");
    row.append(element("span", String(number), "number"));
    if (hit && side.caret) {
      const [start, length] = side.caret;
      row.append(document.createTextNode(line.slice(0, start)), element("mark", line.slice(start, start + length)), document.createTextNode(line.slice(start + length)));
    } else row.append(document.createTextNode(line || " "));
    block.append(row);
  }
  return block;
}

function access(side, before) {
  const parts = [], again = before && side.where && side.where === before.where;
  const told = element("p", side.said + (again ? ", there too" : side.where && `, at ${side.where}`), "said");
  parts.push(told);
  if (side.arithmetic) {
    const line = element("p", "at ", "arithmetic");
    line.append(element("code", side.arithmetic)); parts.push(line);
  }
  if (again) return parts;
  if (side.source.length) parts.push(source(side));
  let inside = side.function;
  for (const [caller, place] of side.callers) {
    parts.push(element("p", `${inside ? `in ${inside}, ` : ""}called at ${place}`, "soft"));
    inside = caller;
  }
  return parts;
}

function labelled(label, text) {
  const line = element("p");
  line.append(element("b", `${label}:`), document.createTextNode(` ${text}`));
  return line;
}

function finding(found, subject, maps) {
  const box = element("section", "", "finding"), [first, second] = found.sides;
  box.append(element("h3", `${found.rule} ${found.title} on ${first.place}`), ...access(first, null), ...access(second, first));
  box.append(labelled("Why", found.reason));
  if (found.hint) box.append(labelled("Hint", found.hint));
  if (found.config) box.append(element("p", subject.kind === "launch" ? `config ${found.config}` : `races ${found.config}`, "soft"));
  const rule = report.rules[found.rule], about = element("details");
  about.append(element("summary", `About ${found.rule}`), element("p", rule.meaning), element("p", rule.hardware));
  box.append(about);
  const at = placeIn(first.place, maps);
  if (at) {
    const button = element("button", "Show on the map"); button.type = "button";
    button.onclick = () => {
      at.section.choose(found.sides.map((side) => side.actor));
      at.section.view.show(at.element); at.section.scrollIntoView(); at.section.querySelector("canvas").focus();
    };
    box.append(button);
  }
  return box;
}

function placeIn(place, maps) {
  const match = /^(.*)\[(\d+)\]$/.exec(place);
  const section = match && maps.get(match[1]);
  return section ? { section, element: Number(match[2]) } : null;
}

function show(index) {
  const subject = report.subjects[index];
  chosen = index;
  entries.forEach((entry, at) => entry.button.setAttribute("aria-current", String(at === index)));
  detail.replaceChildren();
  const head = element("h2", `${subject.name} `);
  head.append(element("span", words[subject.status], `status ${subject.status}`));
  detail.append(head, element("p", `${subject.kind} of ${subject.place}${subject.origin ? `, launched at ${subject.origin}` : ""}`
    + `${subject.repeats > 1 ? `, ${subject.repeats} times` : ""}`, "soft"));
  for (const line of [...subject.details, ...subject.notes]) detail.append(element("p", line, "soft"));
  if (subject.claim) {
    detail.append(element("p", `Proved for ${subject.claim.scope}${subject.claim.qualifiers.length ? `; ${subject.claim.qualifiers.join(", ")}` : ""}`
      + `${subject.model ? `; memory model: ${subject.model}` : ""}`));
  }
  for (const line of subject.allowed) detail.append(element("p", `Allowed: ${line}`));
  for (const gap of subject.gaps) {
    detail.append(element("p", `${gap.where}: ${gap.kind}: ${gap.reason}${gap.config && ` (config ${gap.config})`}`));
    if (gap.source.length) detail.append(source(gap));
  }
  const maps = new Map();
  for (const map of subject.maps) {
    const racing = subject.findings.map((f) => placeIn(f.sides[0].place, new Map([[map.tensor, true]]))).filter(Boolean).map((p) => p.element);
    maps.set(map.tensor, mapSection(map, subject.grid, [...new Set(racing)].filter((e) => e < map.elements), subject.status === "races"));
  }
  for (const found of subject.findings) detail.append(finding(found, subject, maps));
  if (subject.timeline) detail.append(timelineSection(subject.timeline));
  else if (subject.kind === "engine program") detail.append(element("p", "No timeline: a run takes one when it is asked for html or trace, of programs of up to 200,000 instructions.", "soft"));
  else if (subject.kind === "launch" && subject.findings.length && !maps.size) {
    detail.append(element("p", "No map: a run takes one when it is asked for html, of tensors of up to 4 million elements.", "soft"));
  }
  for (const section of maps.values()) detail.append(section);
  for (const found of subject.fragile) {
    detail.append(element("p", `At another grid this would race: ${found.sides[0].said}; ${found.sides[1].said}`, "soft"));
  }
  document.title = `racefree: ${subject.name}`;
}

window.addEventListener("resize", () => { for (const each of document.querySelectorAll(".map, .timeline")) each.view.changed(); });
darkScheme.addEventListener("change", () => { if (entries.length) show(chosen); });
filter();
if (entries.length) show(0); else detail.append(element("p", "Nothing was checked."));
