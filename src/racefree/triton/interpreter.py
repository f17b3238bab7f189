"""Runs program instances of a launch in Triton's interpreter, in this process, watching every access they make.

The process is changed for good: only a forked child may do this.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from racefree.access import Kind
from racefree.eager.definedness import Definedness, Undefined
from racefree.eager.memory import Memory
from racefree.eager.trace import Pid, Place, TooMuch, Trace
from racefree.triton.patches import inside_folders

ACCESSES_IN_A_TURN = 64
"""After so many accesses an instance lets the others go on: it may be waiting for them."""

_TRIED = 2
"""After so many instances it is told how long all will take. The first one also loads what the interpreter needs."""


class Unrunnable(Exception):
    """Triton's interpreter cannot run this kernel; the message says why."""


@dataclass(frozen=True, slots=True)
class Running:
    """What would have been launched: the JIT function, its bound arguments by parameter name, and the grid."""

    function: Any
    arguments: Mapping[str, Any]
    grid: tuple[int, int, int]


class Interpreter:
    """Runs instances of one launch. Made once in a process; every run starts from the memory that the launch found.

    `storages` are (address, bytes) of all memory that may be touched; accesses elsewhere are written down and not made.
    Raises `Unrunnable`.
    """

    def __init__(self, running: Running, storages: Sequence[tuple[int, int]]) -> None:
        from triton.runtime import interpreter

        self._builder = interpreter.interpreter_builder
        self._recorder = _Recorder(Trace(()), self._builder, Memory(storages))
        _call_device_functions_interpreted()
        self._recorder.install(interpreter)
        self._body, self._arguments = _prepared(running, interpreter)
        self._builder.set_grid_dim(*running.grid)

    def run(self, programs: Sequence[Pid], *, taking_turns: bool) -> Trace:
        """The accesses of the instances: side by side if `taking_turns`, else each alone, from the memory of the launch.

        Raises `Unrunnable`, `TooMuch`.
        """
        trace = self._recorder.trace = Trace(tuple(programs))
        try:
            if taking_turns:
                _Turns(self._builder, self._recorder, programs).run(self._one)
            else:
                for index, pid in enumerate(programs):
                    self._recorder.program = index
                    self._builder.set_grid_idx(*pid)
                    self._one()
                    self._recorder.undo()
        except Exception as error:
            raise _why(error) from error
        self._recorder.undo()
        return trace

    def compute(self, programs: Sequence[Pid], watcher: Definedness, *, seconds: float) -> None:
        """Runs the instances one after the other for what they leave in memory.

        Raises `Undefined`, and `Unrunnable` also once they are seen to take longer than that, or for a division by zero, or a
        number with no value, which the interpreter and the device need not agree on.
        """
        self._recorder.trace = watcher
        start = time.monotonic()
        try:
            for done, pid in enumerate(programs, 1):
                self._recorder.program = done - 1
                self._builder.set_grid_idx(*pid)
                with np.errstate(divide="raise", invalid="raise"):
                    self._one()
                self._recorder.keep()
                expected = (time.monotonic() - start) / done * len(programs)
                if done >= _TRIED and expected > seconds:
                    raise Unrunnable(f"its {len(programs)} instances would take {expected:.0f} seconds")
        except Exception as error:
            raise _why(error) from error

    def _one(self) -> None:
        self._body(**self._arguments)


def _why(error: BaseException) -> Exception:
    """The interpreter wraps an error once for every call it passes through, as text; the first one says what happened."""

    innermost: BaseException = error
    while True:
        if isinstance(innermost, TooMuch | Undefined | Unrunnable):
            return innermost
        inner = innermost.__cause__ or innermost.__context__
        if inner is None:
            return Unrunnable(f"Triton's interpreter stopped with {type(innermost).__name__}: {_one_line(innermost)}")
        innermost = inner


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _prepared(running: Running, interpreter: Any) -> tuple[Callable[..., None], dict[str, Any]]:
    """The kernel's body as the interpreter runs it, and the arguments as it passes them."""
    function = running.function
    interpreted = interpreter.InterpretedFunction(function.fn)
    constexprs = {parameter.name for parameter in function.params if parameter.is_constexpr}
    try:
        interpreter._patch_lang(function.fn)
        arguments = {
            name: value if name in constexprs else interpreter._implicit_cvt(value)
            for name, value in running.arguments.items()
        }
        return interpreted.rewrite(), arguments
    except Exception as error:
        raise _why(error) from error


def _call_device_functions_interpreted() -> None:
    """Device functions were made while nothing was interpreted: calling one calls its interpreted twin."""
    from triton import knobs
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    twins: dict[int, Any] = {}

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_semantic", None)
        kwargs.pop("_generator", None)
        if id(self) not in twins:
            twins[id(self)] = InterpretedFunction(self.fn)
        return twins[id(self)](*args, **kwargs)

    JITFunction.__call__ = call
    knobs.runtime.interpret = True


@dataclass(slots=True)
class _Recorder:
    """Stands before the interpreter's ways to memory, which are four."""

    trace: Trace | Definedness
    builder: Any
    memory: Memory
    program: int = 0
    pause: Callable[[], None] | None = None
    _since_pause: int = 0
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def install(self, interpreter: Any) -> None:
        kind_of = type(self.builder)
        self._plain(kind_of, interpreter, "create_masked_load", Kind.LOAD, mask_at=1)
        self._plain(kind_of, interpreter, "create_masked_store", Kind.STORE, mask_at=2)
        self._atomic(kind_of, interpreter, "create_atomic_rmw", Kind.RMW, pointer_at=1, mask_at=3, sem_at=4)
        self._atomic(kind_of, interpreter, "create_atomic_cas", Kind.CAS, pointer_at=0, mask_at=None, sem_at=3)
        for name in dir(kind_of):
            if name.startswith("create_atomic_") and name not in ("create_atomic_rmw", "create_atomic_cas"):
                setattr(kind_of, name, _refuses(name.removeprefix("create_")))

    def undo(self) -> None:
        """Puts back what was written."""
        while self._undo:
            self._undo.pop()()

    def keep(self) -> None:
        """Leaves what was written as it is."""
        self._undo.clear()

    def _plain(self, kind_of: Any, interpreter: Any, name: str, kind: Kind, *, mask_at: int) -> None:
        real = getattr(kind_of, name)

        def noted(builder: Any, pointers: Any, *rest: Any, **keywords: Any) -> Any:
            args = [pointers, *rest]
            size, addresses, active = _shape(pointers, args[mask_at].data)
            lanes = np.flatnonzero(active)
            self.trace.access(self.program, kind, _here(), size, addresses.reshape(-1)[lanes], lanes)
            inside = active & self.memory.holds(addresses, size)
            args[mask_at] = interpreter.TensorHandle(inside, interpreter.tl.int1)
            if kind.writes:
                self._remember(builder, pointers, interpreter, inside)
            found = real(builder, *args, **keywords)
            self._since_pause += 1
            if self._since_pause >= ACCESSES_IN_A_TURN:
                self._turn()
            return found

        setattr(kind_of, name, noted)

    def _atomic(
        self,
        kind_of: Any,
        interpreter: Any,
        name: str,
        kind: Kind,
        *,
        pointer_at: int,
        mask_at: int | None,
        sem_at: int,
    ) -> None:
        real = getattr(kind_of, name)

        def noted(builder: Any, *args: Any) -> Any:
            given = list(args)
            pointers, sem, scope = given[pointer_at], str(given[sem_at]).upper(), str(given[sem_at + 1]).upper()
            mask = True if mask_at is None else given[mask_at].data
            size, addresses, active = _shape(pointers, mask)
            lanes = np.flatnonzero(active)
            touched = addresses.reshape(-1)[lanes]
            inside = active & self.memory.holds(addresses, size)
            if mask_at is not None:
                given[mask_at] = interpreter.TensorHandle(inside, interpreter.tl.int1)
            elif not bool(inside.all()):
                raise Unrunnable("an atomic leaves the memory of the launch")
            apart = "CTA" in scope
            ordered = touched if not apart else touched[:0]
            both = "ACQUIRE_RELEASE" in sem or "ACQ_REL" in sem
            self.trace.before_atomic(self.program, ordered, acquires=both or "ACQUIRE" in sem)
            self.trace.access(self.program, kind, _here(), size, touched, lanes, apart=apart)
            self._remember(builder, pointers, interpreter, inside)
            found = real(builder, *given)
            self.trace.after_atomic(self.program, ordered, releases=both or "RELEASE" in sem)
            self._turn()
            return found

        setattr(kind_of, name, noted)

    def _turn(self) -> None:
        self._since_pause = 0
        if self.pause is not None:
            self.pause()

    def _remember(self, builder: Any, pointers: Any, interpreter: Any, inside: npt.NDArray[np.bool_]) -> None:
        if not inside.any():
            return
        element = pointers.get_element_ty()
        kind = interpreter._get_np_dtype(element)
        native = interpreter._interpreter
        before = native.load(pointers.data, inside, np.zeros(inside.shape, dtype=kind), kind)
        self._undo.append(lambda: native.store(pointers.data, before, inside))


def _refuses(operation: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Unrunnable(f"what {operation} orders is not followed")

    return refuse


def _shape(pointers: Any, mask: Any) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """(element size, addresses, which of them are touched)"""
    size = max(1, int(pointers.get_element_ty().primitive_bitwidth) // 8)
    addresses = np.asarray(pointers.data).astype(np.int64)
    return size, addresses, np.array(np.broadcast_to(np.asarray(mask, dtype=bool), addresses.shape))


def _here() -> Place:
    """The line of a kernel or device function that makes the access."""
    frame: Any = sys._getframe(2)
    inside = inside_folders()
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(inside):
            return name, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return "<unknown>", 0, ""


class _Turns:
    """Runs instances in threads of which one at a time goes on, round and round, until all have ended."""

    def __init__(self, builder: Any, recorder: _Recorder, programs: Sequence[Pid]) -> None:
        self._builder, self._recorder, self._programs = builder, recorder, programs
        self._back = threading.Semaphore(0)
        self._go = [threading.Semaphore(0) for _ in programs]
        self._failed: BaseException | None = None

    def run(self, one: Callable[[], None]) -> None:
        waiting = list(range(len(self._programs)))
        ended: set[int] = set()

        def whole(index: int) -> Callable[[], None]:
            def body() -> None:
                self._go[index].acquire()
                try:
                    one()
                except BaseException as error:
                    self._failed = error
                ended.add(index)
                self._back.release()

            return body

        for index in waiting:
            threading.Thread(target=whole(index), daemon=True).start()
        self._recorder.pause = self._pause
        while waiting:
            for index in waiting:
                self._recorder.program = index
                self._builder.set_grid_idx(*self._programs[index])
                self._go[index].release()
                self._back.acquire()
                if self._failed is not None:
                    raise self._failed
            waiting = [index for index in waiting if index not in ended]
        self._recorder.pause = None

    def _pause(self) -> None:
        mine = self._recorder.program
        self._back.release()
        self._go[mine].acquire()
