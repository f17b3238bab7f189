"""Every error racefree raises on purpose; anything else that escapes is a bug of ours."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.access import Site


class RacefreeError(Exception):
    """Base of all errors a user can act on. The message says what to do next."""


class InputError(RacefreeError):
    """The input cannot be read (missing, malformed, wrong version). Fix the file or the arguments; exit code 2."""


class MissingPackage(RacefreeError):
    """An optional package is needed for this input. Install the extra the message names; exit code 2."""


class UnsupportedVersion(RacefreeError):
    """An installed package has a version racefree does not know. Install one in the stated range; exit code 2."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What could not be analysed, and where: no claim is made about it.

    `kind` is a stable kebab-case word (`indirect-address`, `compile-failed`, `timeout`, ...), `reason` one sentence.
    """

    kind: str
    reason: str
    source: Site | None = None


class Refused(RacefreeError):
    """Raised inside the analysis to give up on one launch or program; callers turn it into `unsupported`."""

    def __init__(self, kind: str, reason: str, source: Site | None = None) -> None:
        self.refusal = Refusal(kind, reason, source)
        super().__init__(f"{kind}: {reason}")
