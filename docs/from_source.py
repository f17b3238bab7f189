"""Directives for what the program itself knows, so that it is written once: its rules, and the memory models it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from racefree.proof.memory_model import MemoryModel, memory_model
from racefree.report.rules import RULES, Rule

VERSIONS = ("3.7", "3.8", "3.9")
TARGETS = ("cuda:80", "hip:gfx942")


class Rules(SphinxDirective):
    """A section for each rule, with its name as the label."""

    def run(self) -> list[nodes.Node]:
        return [self._section(rule) for rule in RULES.values()]

    def _section(self, rule: Rule) -> nodes.section:
        section = nodes.section(ids=[rule.name.lower()], names=[rule.name.lower()])
        section += nodes.title(text=f"{rule.name}: {rule.title}")
        self.state.document.note_explicit_target(section)
        section += paragraphs(rule.meaning)
        section += [nodes.rubric(text="On hardware"), *paragraphs(rule.hardware)]
        language = "python" if "@triton.jit" in rule.racy else "text"
        for title, code in (("Racy", rule.racy), ("Fixed", rule.fixed)):
            section += [nodes.rubric(text=title), nodes.literal_block(code, code, language=language)]
        return section


class MemoryModels(SphinxDirective):
    """A table of what Triton adds, by version and target."""

    def run(self) -> list[nodes.Node]:
        rows: list[tuple[str, ...]] = [
            (
                "as a verdict names it",
                "before a release",
                "after an acquire",
                "in a block-wide reduction",
                "with a result",
            )
        ]
        models = [memory_model(version, target) for target in TARGETS for version in VERSIONS]
        rows += [row(model) for model in models]
        return [table(rows)]


def row(model: MemoryModel) -> tuple[str, ...]:
    facts = (model.barrier_before_release, model.barrier_after_acquire, model.barrier_in_reduction)
    none = "none counted" if model.known else "not measured"
    warps = model.warps_for_result_barrier
    result = none if warps is None else "barrier" if warps == 1 else f"barrier from {warps} warps on"
    return (model.name, *("barrier" if fact else none for fact in facts), result)


def paragraphs(text: str) -> Iterator[nodes.paragraph]:
    for part in text.split("\n\n"):
        yield nodes.paragraph("", "", *inline(" ".join(part.split())))


def inline(text: str) -> Iterator[nodes.Node]:
    for part in re.split(r"(`[^`]+`)", text):
        code = part.strip("`")
        yield nodes.literal(text=code) if part.startswith("`") else nodes.Text(part)


def table(rows: list[tuple[str, ...]]) -> nodes.table:
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    head, body = nodes.thead(), nodes.tbody()
    for number, cells in enumerate(rows):
        made = nodes.row()
        for cell in cells:
            entry = nodes.entry()
            entry += nodes.paragraph(text=cell)
            made += entry
        (body if number else head).append(made)
    group += [head, body]
    return nodes.table("", group)


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("racefree-rules", Rules)
    app.add_directive("racefree-memory-models", MemoryModels)
    return {"parallel_read_safe": True, "version": "1"}
