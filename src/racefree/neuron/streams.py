"""Reads a nested document piece by piece: enter objects and arrays, decode only the leaves one at a time.

A program of several hundred megabytes is mostly instructions; decoding them one by one keeps the plain form of a single
instruction alive beside the records, instead of the whole document. JSON and CBOR share one protocol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol, TextIO

from racefree.errors import InputError, MissingPackage

CHUNK_CHARS = 1 << 20

_LONGEST_WORD = 16

_SPACE = re.compile(r"[ \t\r\n]*")


class Cursor(Protocol):
    """A position in a document. Exactly one of the four readers consumes the value that stands there."""

    def kind(self) -> str:
        """`object`, `array` or `leaf`, without consuming anything."""
        ...

    def members(self) -> Iterator[str]:
        """The keys of the object here; the caller consumes each value before asking for the next key."""
        ...

    def elements(self) -> Iterator[int]:
        """The positions of the array here; the caller consumes each element before asking for the next."""
        ...

    def value(self) -> Any:
        """The whole value here, decoded."""
        ...

    def finish(self) -> None:
        """Check that nothing follows the document."""
        ...


class JsonCursor:
    """A cursor over JSON text, holding one window of it."""

    def __init__(self, stream: TextIO, name: str, *, chunk_chars: int = CHUNK_CHARS) -> None:
        self._stream = stream
        self._name = name
        self._chunk = chunk_chars
        self._window = ""
        self._at = 0
        self._before = 0
        self._ended = False
        self._decode = json.JSONDecoder().raw_decode

    def _more(self) -> bool:
        if self._ended:
            return False
        try:
            text = self._stream.read(max(self._chunk, len(self._window) - self._at))
        except UnicodeDecodeError as error:
            raise InputError(f"{self._name}: not UTF-8 text ({error.reason})") from None
        if not text:
            self._ended = True
            return False
        self._before += self._at
        self._window = self._window[self._at :] + text
        self._at = 0
        return True

    def _peek(self) -> str:
        while True:
            match = _SPACE.match(self._window, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._more():
                raise self._broken("the document ends here", "more JSON")

    def _broken(self, found: str, expected: str) -> InputError:
        return InputError(f"{self._name}: character {self._before + self._at}: expected {expected}, but {found}")

    def _take(self, wanted: str) -> None:
        found = self._peek()
        if found != wanted:
            raise self._broken(f"found {found!r}", repr(wanted))
        self._at += 1

    def kind(self) -> str:
        return {"{": "object", "[": "array"}.get(self._peek(), "leaf")

    def members(self) -> Iterator[str]:
        self._take("{")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            if self._peek() != '"':
                raise self._broken(f"found {self._peek()!r}", "a key in double quotes")
            key = self.value()
            self._take(":")
            yield key
            if self._closes("}"):
                return

    def elements(self) -> Iterator[int]:
        self._take("[")
        if self._peek() == "]":
            self._at += 1
            return
        position = 0
        while True:
            yield position
            position += 1
            if self._closes("]"):
                return

    def _closes(self, bracket: str) -> bool:
        found = self._peek()
        if found not in (",", bracket):
            raise self._broken(f"found {found!r}", f"',' or {bracket!r}")
        self._at += 1
        return found == bracket

    def value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._window, self._at)
            except json.JSONDecodeError as error:
                if self._may_be_cut(error) and self._more():
                    continue
                raise InputError(f"{self._name}: character {self._before + error.pos}: {error.msg}") from None
            except ValueError:  # Python reads no number of more than some thousand digits.
                raise self._broken("this has too many digits", "a number of a sensible size") from None
            # A number that reaches the end of the window may go on in the next chunk.
            if end < len(self._window) or not self._more():
                self._at = end
                return value

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the window's end, rather than the text, may be at fault: the longest word of JSON is short."""
        return error.msg.startswith("Unterminated string") or error.pos > len(self._window) - _LONGEST_WORD

    def finish(self) -> None:
        while True:
            match = _SPACE.match(self._window, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._window):
                raise self._broken(f"found {self._window[self._at]!r}", "the end of the document")
            if not self._more():
                return


class ValueCursor:
    """A cursor over a document that is already decoded."""

    def __init__(self, value: Any, name: str) -> None:
        self._value = value
        self._name = name

    def kind(self) -> str:
        match self._value:
            case dict():
                return "object"
            case list() | tuple():
                return "array"
            case _:
                return "leaf"

    def members(self) -> Iterator[str]:
        container = self._value
        for key in container:
            self._value = container[key]
            yield str(key)

    def elements(self) -> Iterator[int]:
        container = self._value
        for position, element in enumerate(container):
            self._value = element
            yield position

    def value(self) -> Any:
        return self._value

    def finish(self) -> None:
        return


class CborCursor:
    """A cursor over CBOR bytes. Needs cbor2."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        try:
            import cbor2
        except ImportError:
            raise MissingPackage(f"{name} is CBOR: install racefree[cbor] to read it") from None
        self._stream = stream
        self._name = name
        self._failures: tuple[type[Exception], ...] = (cbor2.CBORDecodeError, EOFError, UnicodeDecodeError)
        self._load: Callable[[BinaryIO], Any] = cbor2.load

    def _head(self) -> tuple[int, int | None]:
        """Major type and argument at the cursor (None: indefinite length), tags skipped; consumes the head."""
        while True:
            first = self._exactly(1)[0]
            major, info = first >> 5, first & 31
            if info < 24:
                argument: int | None = info
            elif info < 28:
                argument = int.from_bytes(self._exactly(1 << (info - 24)), "big")
            elif info == 31:
                argument = None
            else:
                raise InputError(f"{self._name}: byte {self._stream.tell() - 1}: not CBOR (reserved length)")
            if major != 6:
                return major, argument

    def _exactly(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise InputError(f"{self._name}: byte {self._stream.tell()}: the CBOR document ends too early")
        return data

    def _first(self) -> int:
        place = self._stream.tell()
        major, _ = self._head()
        self._stream.seek(place)
        return major

    def kind(self) -> str:
        return {5: "object", 4: "array"}.get(self._first(), "leaf")

    def _container(self, wanted: int, what: str) -> Iterator[int]:
        place = self._stream.tell()
        major, count = self._head()
        if major != wanted:
            raise InputError(f"{self._name}: byte {place}: expected {what}")
        position = 0
        while count is None or position < count:
            if count is None:
                if self._exactly(1) == b"\xff":
                    return
                self._stream.seek(-1, 1)
            yield position
            position += 1

    def members(self) -> Iterator[str]:
        for _ in self._container(5, "a map"):
            key = self.value()
            if not isinstance(key, str):
                raise InputError(f"{self._name}: byte {self._stream.tell()}: expected a text key, found {key!r}")
            yield key

    def elements(self) -> Iterator[int]:
        yield from self._container(4, "an array")

    def value(self) -> Any:
        try:
            return self._load(self._stream)
        except self._failures as error:
            raise InputError(f"{self._name}: byte {self._stream.tell()}: not CBOR ({error})") from None

    def finish(self) -> None:
        if self._stream.read(1):
            raise InputError(f"{self._name}: byte {self._stream.tell() - 1}: bytes follow the CBOR document")
