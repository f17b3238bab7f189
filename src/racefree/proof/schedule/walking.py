"""Leads one program instance through its statements: branches, loops, and which values are bound and forgotten on the way."""

from __future__ import annotations

from dataclasses import replace

from racefree.access import Site
from racefree.errors import Refusal
from racefree.graph.program import For, Guard, If, Program, Statement, Value, While
from racefree.proof.replay.lanes import Lanes, constant, element_bits, signed_int, unknown
from racefree.proof.schedule.liveness import last_decisions, last_uses
from racefree.proof.schedule.relevance import Relevance
from racefree.proof.schedule.segments import Segment
from racefree.proof.schedule.thread import UNSTAMPED, Control, Frame, Thread
from racefree.proof.schedule.values import NONE, OLDER, Val, join


class Walker:
    """What of a program decides how its instances move on; `max_steps` statements are the most one may do."""

    def __init__(self, program: Program, relevance: Relevance, max_steps: int) -> None:
        self.relevance = relevance
        self.max_steps = max_steps
        self.last = last_uses(program)
        self.decides = last_decisions(program, relevance)

    # ---- control flow ------------------------------------------------------------------------------------------------

    def branch(self, thread: Thread, statement: Guard | If) -> None:
        condition = self.get(thread, statement.condition)
        taken = condition.scalar()
        if taken is None:
            self.stop(thread, "control-flow", "a branch depends on a value that is not known", statement.site)
            return
        control = thread.frames[-1].control.under(condition)
        if isinstance(statement, If):
            part = 0 if taken else 1
            self.push(thread, statement, part, statement.else_body if part else statement.then_body, control)
        elif taken:
            self.push(thread, statement, 0, statement.body, control)
        else:
            self.next(thread)

    def enter_for(self, thread: Thread, loop: For) -> None:
        bounds = [self.get(thread, v) for v in (loop.lower, loop.upper, loop.step)]
        numbers = [b.scalar() for b in bounds]
        if any(n is None for n in numbers):
            self.stop(thread, "loop-bound", "a loop bound is not known", loop.site)
            return
        bits = element_bits(loop.induction.element)
        low, high, step = (n if loop.unsigned else signed_int(n, bits) for n in numbers if n is not None)
        inits = [self.get(thread, v) for v in loop.inits]
        if step <= 0:
            self.stop(thread, "loop-bound", "the step of a loop is not positive", loop.site)
        elif low >= high:
            self.bind(thread, loop.results, inits)
            self.next(thread)
        else:
            control = thread.frames[-1].control
            for bound in bounds:
                control = control.under(bound)
            self.push(thread, loop, 0, loop.body, control)
            frame = thread.frames[-1]
            frame.induction, frame.upper, frame.step = low, high, step
            self._round(thread, loop, frame, inits)

    def enter_while(self, thread: Thread, loop: While) -> None:
        self.bind(thread, loop.before_args, [self.get(thread, v) for v in loop.inits])
        self.push(thread, loop, 0, loop.before, thread.frames[-1].control)
        thread.frames[-1].first_read = thread.reads

    def _round(self, thread: Thread, loop: For, frame: Frame, carried: list[Val]) -> None:
        lanes = constant(frame.induction, loop.induction)
        induction = Val(lanes, NONE, NONE, NONE, frame.control.acquired)
        self.bind(thread, (loop.induction, *loop.carried), [induction, *carried])

    def leave(self, segment: Segment, frame: Frame) -> None:
        """The end of a body: go round again, or back to the statement that owns it."""
        thread = segment.thread
        match frame.owner:
            case None:
                thread.frames.pop()
            case Guard():
                thread.frames.pop()
                self.next(thread)
            case If():
                yields = frame.owner.else_yields if frame.part else frame.owner.then_yields
                values = [self.get(thread, v) for v in yields]
                self._pop(thread, frame)
                values = [replace(v, acquired=join(v.acquired, frame.control.acquired), _key=[]) for v in values]
                self.bind(thread, frame.owner.results, values)
                self.next(thread)
            case For():
                self._leave_for(thread, frame, frame.owner)
            case While():
                self._leave_while(segment, frame, frame.owner)
            case _:
                raise AssertionError("only control flow owns a body")

    def _leave_for(self, thread: Thread, frame: Frame, loop: For) -> None:
        values = [self.get(thread, v) for v in loop.yields]
        self._forget(thread, frame)
        frame.induction += frame.step
        frame.iteration += 1
        if frame.induction < frame.upper:
            frame.at = 0
            self._round(thread, loop, frame, values)
        else:
            thread.frames.pop()
            self.bind(thread, loop.results, values)
            self.next(thread)

    def _leave_while(self, segment: Segment, frame: Frame, loop: While) -> None:
        thread = segment.thread
        if frame.part == 1:
            values = [self.get(thread, v).without(frame.first_read) for v in loop.after_yields]
            self._forget(thread, frame)
            self._next_round(thread, frame)
            self.bind(thread, loop.before_args, values)
            frame.part, frame.body, frame.at = 0, loop.before, 0
            segment.spun = True
            return
        condition = self.get(thread, loop.condition)
        going = condition.scalar()
        if going is None:
            self.stop(thread, "control-flow", "a loop condition depends on a value that is not known", loop.site)
            return
        forwarded = [self.get(thread, v) for v in loop.forwarded]
        self._forget(thread, frame)
        if going:
            frame.control = frame.control.under(condition)
            self.bind(thread, loop.after_args, forwarded)
            frame.part, frame.body, frame.at = 1, loop.after, 0
            return
        thread.frames.pop()
        for outer in thread.frames:  # whatever comes later runs only because the loop has ended
            outer.control = outer.control.under(condition)
            outer.control = Control(join(outer.control.acquired, frame.control.acquired), outer.control.reads)
        self.bind(thread, loop.results, forwarded)
        self.next(thread)

    def _next_round(self, thread: Thread, frame: Frame) -> None:
        """Reads of the finished round lose their numbers, which the next round uses again."""
        first = frame.first_read
        decided = frame.control.reads
        thread.unordered = frozenset(
            (cell, n if n < first else OLDER) for cell, n in thread.unordered if n < first or n not in decided
        )
        aged = [e._replace(read=UNSTAMPED) if e.read >= first else e for e in thread.open]
        thread.open = tuple(dict.fromkeys(aged))
        thread.settled = frozenset(e._replace(read=UNSTAMPED) if e.read >= first else e for e in thread.settled)
        if any(n >= first for n in decided):
            kept = frozenset(n for n in decided if n < first) | {OLDER}
            frame.control = Control(frame.control.acquired, kept)
        thread.reads = first
        thread.steps = 0 if thread.steps < self.max_steps // 2 else thread.steps

    def _pop(self, thread: Thread, frame: Frame) -> None:
        self._forget(thread, frame)
        thread.frames.pop()

    def _forget(self, thread: Thread, frame: Frame) -> None:
        for index in self.last[(id(frame.body), -1)]:
            thread.env.pop(index, None)

    def push(self, thread: Thread, owner: Statement, part: int, body: tuple[Statement, ...], control: Control) -> None:
        thread.frames.append(Frame(body, control, owner, part))

    def next(self, thread: Thread) -> None:
        frame = thread.frames[-1]
        for index in self.last[(id(frame.body), frame.at)]:
            thread.env.pop(index, None)
        for index in self.decides.get((id(frame.body), frame.at), ()):
            value = thread.env.get(index)
            if value is not None and value.lanes is not None:
                thread.env[index] = replace(value, lanes=None, _key=[])
        frame.at += 1

    def get(self, thread: Thread, value: Value) -> Val:
        found = thread.env.get(value.index)
        if found is not None:
            return found
        return Val(None, NONE, NONE, NONE, (0,) * len(thread.everyone))

    def lanes(self, thread: Thread, value: Value) -> Lanes:
        lanes = self.get(thread, value).lanes
        return unknown(value.shape) if lanes is None else lanes

    def bind(self, thread: Thread, names: tuple[Value, ...], values: list[Val]) -> None:
        for name, value in zip(names, values, strict=True):
            if value.lanes is not None and name.index not in self.relevance.values:
                value = replace(value, lanes=None, _key=[])
            thread.env[name.index] = value

    def stop(self, thread: Thread, kind: str, reason: str, site: Site) -> None:
        thread.stuck = Refusal(kind, reason, site)
