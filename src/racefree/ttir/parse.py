"""Reads MLIR's generic form into an operation tree, and proves that no operation was lost on the way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from racefree.errors import Refused
from racefree.ttir.generic import CensusKey, GenericModule
from racefree.ttir.tree import (
    UNKNOWN,
    Attribute,
    Block,
    BlockArgument,
    Dense,
    Frame,
    Location,
    Operation,
    Raw,
    Region,
    Symbol,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|\\)")


def parse(module: GenericModule) -> Operation:
    """The `builtin.module` operation of a module in generic form.

    Raises `Refused("parse")` when the text is not understood to the last character, or when the operations read are not
    the ones Triton counted.
    """
    source = module.text.encode()
    root = _parser().parse(source).root_node
    if root.has_error:
        raise Refused(
            "parse", f"the generic form is not understood at line {_first_error(root) + 1} of the printed TTIR"
        )
    top = _Tree(source, root.named_children).top()
    if module.census is not None:
        _check_census(top, module.census)
    return top


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_mlir

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_mlir.language()))


def _first_error(root: Node) -> int:
    node = root
    while not (node.is_error or node.is_missing):
        node = next((child for child in node.children if child.has_error or child.is_missing), node)
        if not node.has_error and not node.is_missing:
            break
    return node.start_point[0]


def _check_census(top: Operation, expected: Mapping[CensusKey, int]) -> None:
    found: Counter[CensusKey] = Counter(
        (op.name, len(op.operands), len(op.results), len(op.regions)) for op in walk(top) if op is not top
    )
    if found != Counter(expected):
        lost = sorted(key[0] for key in (Counter(expected) - found) | (found - Counter(expected)))
        raise Refused("parse", f"the operations read differ from those Triton counted: {', '.join(lost)}")


class _Tree:
    """Converts syntax nodes. Attributes, locations and type lists repeat, so each distinct text is converted once."""

    def __init__(self, source: bytes, toplevel: Iterable[Node]) -> None:
        self._source = source
        self._aliases: dict[bytes, Node] = {}
        self._operations: list[Node] = []
        self._locations: dict[bytes, Location] = {}
        self._attributes: dict[bytes, Attribute] = {}
        self._signatures: dict[bytes, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for node in toplevel:
            match node.type:
                case "attribute_alias_def":
                    name, _, _ = self._bytes(node).partition(b" =")
                    self._aliases[name] = node.named_children[-1]
                case "operation":
                    self._operations.append(node)
                case "comment":
                    pass
                case _:
                    raise self._unknown(node)

    def top(self) -> Operation:
        operations = [self._operation(node) for node in self._operations]
        if len(operations) != 1 or operations[0].name != "builtin.module":
            raise Refused("parse", "the text holds no single module")
        return operations[0]

    def _bytes(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]

    def _text(self, node: Node) -> str:
        return self._bytes(node).decode()

    def _string(self, node: Node) -> str:
        """A string literal without its escapes: MLIR writes what is no printable ASCII as a backslash and two hex digits."""
        text = self._text(node)[1:-1]
        if "\\" not in text:
            return text
        raw = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]) if match[1] else b"\\", text.encode())
        return raw.decode(errors="replace")

    def _unknown(self, node: Node) -> Refused:
        line = node.start_point[0] + 1
        return Refused("parse", f"unexpected {node.type} at line {line} of the printed TTIR: {self._text(node)[:60]}")

    # ---- operations --------------------------------------------------------------------------------------------------

    def _operation(self, node: Node) -> Operation:
        results: list[str] = []
        location = UNKNOWN
        generic: Node | None = None
        for child in node.children:
            match child.type:
                case "op_result":
                    results.extend(self._results(child))
                case "generic_operation":
                    generic = child
                case "trailing_location":
                    location = self._trailing(child)
                case "=" | ",":
                    pass
                case _:
                    raise self._unknown(child)
        if generic is None:
            raise self._unknown(node)
        return self._generic(generic, tuple(results), location)

    def _results(self, node: Node) -> Iterable[str]:
        name, _, count = self._text(node).partition(":")
        name = name.strip()
        return (f"{name}#{position}" for position in range(int(count))) if count else (name,)

    def _generic(self, node: Node, results: tuple[str, ...], location: Location) -> Operation:
        name = ""
        operands: list[str] = []
        successors: list[str] = []
        regions: list[Region] = []
        attributes: dict[str, Attribute] = {}
        signature: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        for child in node.children:
            match child.type:
                case "string_literal":
                    name = self._text(child)[1:-1]
                case "value_use":
                    operands.append(self._text(child))
                case "successor":
                    if child.child_count != 1:
                        raise self._unknown(child)
                    successors.append(self._text(child))
                case "region":
                    regions.append(self._region(child))
                case "properties":
                    self._entries(child, attributes)
                case "attribute":
                    self._entries(child.named_children[0], attributes)
                case "function_type":
                    signature = self._signature(child)
                case "(" | ")" | "," | "[" | "]" | ":":
                    pass
                case _:
                    raise self._unknown(child)
        if signature is None or len(signature[0]) != len(operands) or len(signature[1]) != len(results):
            raise self._unknown(node)
        return Operation(
            name,
            tuple(operands),
            signature[0],
            results,
            signature[1],
            attributes,
            tuple(successors),
            tuple(regions),
            location,
        )

    def _signature(self, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
        key = self._bytes(node)
        known = self._signatures.get(key)
        if known is None:
            sides: tuple[list[str], list[str]] = ([], [])
            side = 0
            for child in node.children:
                match child.type:
                    case "type":
                        sides[side].append(self._text(child))
                    case "->":
                        side = 1
                    case "(" | ")" | ",":
                        pass
                    case _:
                        raise self._unknown(child)
            known = self._signatures[key] = (tuple(sides[0]), tuple(sides[1]))
        return known

    # ---- regions -----------------------------------------------------------------------------------------------------

    def _region(self, node: Node) -> Region:
        return tuple(self._block(child) for child in node.named_children if child.type != "comment")

    def _block(self, node: Node) -> Block:
        if node.type not in ("entry_block", "block"):
            raise self._unknown(node)
        label, arguments = "", tuple[BlockArgument, ...]()
        operations: list[Operation] = []
        for child in node.children:
            match child.type:
                case "operation":
                    operations.append(self._operation(child))
                case "block_label":
                    label, arguments = self._label(child)
                case "comment":
                    pass
                case _:
                    raise self._unknown(child)
        return Block(label, arguments, tuple(operations))

    def _label(self, node: Node) -> tuple[str, tuple[BlockArgument, ...]]:
        label = ""
        names: list[str] = []
        types: list[str] = []
        locations: list[Location] = []
        for child in node.children:
            match child.type:
                case "caret_id":
                    label = self._text(child)
                case "block_arg_list":
                    for part in child.named_children:
                        match part.type:
                            case "value_use":
                                names.append(self._text(part))
                                locations.append(UNKNOWN)
                            case "type":
                                types.append(self._text(part))
                            case "trailing_location":
                                locations[-1] = self._trailing(part)
                            case _:
                                raise self._unknown(part)
                case ":" | "comment":
                    pass
                case _:
                    raise self._unknown(child)
        if len(names) != len(types):
            raise self._unknown(node)
        return label, tuple(map(BlockArgument, names, types, locations))

    # ---- attributes --------------------------------------------------------------------------------------------------

    def _entries(self, node: Node, into: dict[str, Attribute]) -> None:
        for entry in node.named_children:
            if entry.type != "attribute_entry":
                raise self._unknown(entry)
            name, *values = entry.named_children
            key = self._text(name).strip('"')
            if key in into or len(values) > 1:
                raise self._unknown(entry)
            into[key] = self._attribute(values[0]) if values else Raw("unit")

    def _attribute(self, node: Node) -> Attribute:
        key = self._bytes(node)
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes[key] = self._convert(node)
        return known

    def _convert(self, node: Node) -> Attribute:
        parts = node.named_children
        opening = node.children[0].type if node.child_count else ""
        if node.type == "dictionary_attribute":
            entries: dict[str, Attribute] = {}
            self._entries(node, entries)
            return entries
        if node.type == "attribute_value" and opening == "[":
            return tuple(self._attribute(part) for part in parts if part.type != "type")
        if node.type == "attribute_value" and parts:
            head = parts[0]
            return self._literal(node, head) if len(parts) <= 2 else Raw(self._text(node))
        return self._literal(node, node)

    def _literal(self, whole: Node, head: Node) -> Attribute:
        text = self._text(head).strip()
        match head.type:
            case "integer_literal" if not text.lower().startswith(("0x", "-0x")):
                return int(text)
            case "bool_literal":
                return text == "true"
            case "string_literal":
                return self._string(head)
            case "symbol_ref_id":
                return Symbol(text[1:].strip('"'))
            case "dictionary_attribute":
                return self._attribute(head)
            case "array_literal":
                return tuple(self._element(part) for part in head.named_children if part.type != "type")
            case "tensor_literal":
                return self._dense(whole, head)
            case _:
                return Raw(self._text(whole))

    def _element(self, node: Node) -> Attribute:
        text = self._text(node).strip()
        if text in ("true", "false"):
            return text == "true"
        try:
            return int(text)
        except ValueError:
            return Raw(text)

    def _dense(self, whole: Node, literal: Node) -> Attribute:
        """Integer elements. Anything else (floats, hexadecimal blobs) stays text: it is data."""
        body = self._text(literal).removeprefix("dense<").removesuffix(">")
        words = body.replace("[", " ").replace("]", " ").replace(",", " ").split()
        try:
            values = tuple(int(word == "true") if word in ("true", "false") else int(word) for word in words)
        except ValueError:
            return Raw(self._text(whole))
        if not values:
            return Raw(self._text(whole))
        return Dense(values, splat="[" not in body)

    # ---- locations ---------------------------------------------------------------------------------------------------

    def _trailing(self, node: Node) -> Location:
        inner = node.named_children
        if len(inner) != 1:
            raise self._unknown(node)
        return self._location(inner[0])

    def _location(self, node: Node) -> Location:
        key = self._bytes(node)
        known = self._locations.get(key)
        if known is None:
            known = self._locations[key] = self._place(node)
        return known

    def _place(self, node: Node) -> Location:
        parts = node.named_children
        if not parts:
            return UNKNOWN
        head = parts[0]
        match head.type:
            case "attribute_alias":
                target = self._aliases.get(self._bytes(head))
                if target is None:
                    raise self._unknown(node)
                return self._aliased(target)
            case "string_literal":
                return self._named_or_file(parts)
            case "callsite_location":
                callee, caller = (self._location(part) for part in head.named_children)
                return Location(callee.frames + caller.frames, callee.name)
            case "fused_location":
                known = (self._location(part) for part in head.named_children if part.type == "location")
                return next((location for location in known if location.frames), UNKNOWN)
            case _:
                return UNKNOWN

    def _aliased(self, target: Node) -> Location:
        inner = target.named_children
        if len(inner) != 1 or inner[0].type != "trailing_location":
            return UNKNOWN
        return self._trailing(inner[0])

    def _named_or_file(self, parts: list[Node]) -> Location:
        text = self._string(parts[0])
        if len(parts) >= 3 and parts[1].type == parts[2].type == "integer_literal":
            return Location((Frame(text, int(self._text(parts[1])), int(self._text(parts[2]))),))
        inner = self._location(parts[1]) if len(parts) > 1 else UNKNOWN
        # A value gets one more name with every assignment to a variable; the innermost is the parameter's own.
        return Location(inner.frames, inner.name or text)
