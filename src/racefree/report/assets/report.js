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
const words = { races: "races", unsupported: "not analysed", vacuous: "vacuous", allowed: "races allowed", ok: "proved race-free" };

for (const note of report.notes) document.getElementById("notes").append(element("li", note));

const entries = report.subjects.map((subject, index) => {
  const item = element("li"), button = element("button");
  button.type = "button";
  button.append(element("span", words[subject.status], `status ${subject.status}`), document.createTextNode(` ${subject.name}`));
  button.append(element("span", ` ${subject.origin || subject.place}${subject.repeats > 1 ? ` x${subject.repeats}` : ""}`, "soft"));
  button.onclick = () => show(index);
  item.append(button); list.append(item);
  const haystack = [subject.name, subject.place, subject.origin, words[subject.status], subject.kind, ...subject.allowed, ...subject.gaps.flatMap((g) => [g.kind, g.reason]),
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
  if (!side.source.length) return document.createDocumentFragment();
  const block = element("pre");
  for (const [number, line] of side.source) {
    const row = element("span", "", number === side.line ? "row hit" : "row");
    row.append(element("span", String(number), "number"), document.createTextNode(line || " "));
    block.append(row);
  }
  return block;
}

function finding(found, subject, maps) {
  const box = element("section", "", "finding");
  box.append(element("h3", `${found.rule} ${found.title} on ${found.sides[0].place}`));
  found.sides.forEach((side, at) => {
    const again = at && side.where && side.where === found.sides[0].where;
    box.append(element("p", side.said + (again ? ", there too" : side.where && `, at ${side.where}`)));
    if (again) return;
    box.append(source(side));
    for (const caller of side.callers) box.append(element("p", `called from ${caller}`, "soft"));
  });
  box.append(element("p", `Why: ${found.reason}`));
  if (found.hint) box.append(element("p", `Hint: ${found.hint}`));
  if (found.config) box.append(element("p", `Config: ${found.config}`, "soft"));
  const rule = report.rules[found.rule], about = element("details");
  about.append(element("summary", `About ${found.rule}`), element("p", rule.meaning), element("p", rule.hardware));
  box.append(about);
  const at = placeIn(found.sides[0].place, maps);
  if (at) {
    const button = element("button", "Show on the map"); button.type = "button";
    button.onclick = () => { at.section.view.show(at.element); at.section.scrollIntoView(); at.section.querySelector("canvas").focus(); };
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
  for (const gap of subject.gaps) detail.append(element("p", `${gap.place}: ${gap.kind}: ${gap.reason} ${gap.config}`));
  const maps = new Map();
  for (const map of subject.maps) {
    const racing = subject.findings.map((f) => placeIn(f.sides[0].place, new Map([[map.tensor, true]]))).filter(Boolean).map((p) => p.element);
    maps.set(map.tensor, mapSection(map, subject.grid, [...new Set(racing)].filter((e) => e < map.elements)));
  }
  for (const found of subject.findings) detail.append(finding(found, subject, maps));
  if (subject.timeline) detail.append(timelineSection(subject.timeline));
  for (const section of maps.values()) detail.append(section);
  for (const found of subject.fragile) {
    detail.append(element("p", `At another grid this would race: ${found.sides[0].said}; ${found.sides[1].said}`, "soft"));
  }
  document.title = `racefree: ${subject.name}`;
}

window.addEventListener("resize", () => { for (const each of document.querySelectorAll(".map, .timeline")) each.view.changed(); });
filter();
if (entries.length) show(0); else detail.append(element("p", "Nothing was checked."));
