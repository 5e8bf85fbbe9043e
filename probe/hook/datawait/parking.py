"""Waiting inside the training script for the agent to end the run (SPEC §4, header field `parked`)."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import layout
from .control import Agent

NAP = 0.05  # seconds
LONGEST = 600_000_000_000  # ns: an agent that has not ended the run by then never will (it waits for no rank so long)
AT_PLAN_END, BY_SAVE_GUARD = 1, 2  # header field `parked`


class RunEnded(SystemExit):
    """Raised where a run that trained on repeated batches wants to save and nobody is left to end it. A hang would
    hold the GPUs for ever, and going on would overwrite a checkpoint."""


class Parking:
    """Says that this rank waits, and waits. Ends only when the agent is gone, or fails to do what it is there for."""

    def __init__(self, ring: Any, clock: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self.agent: Optional[Agent] = None
        self._ring = ring
        self._clock = clock
        self._sleep = sleep

    def know(self, pid: int, page: Optional[str]) -> None:
        """The agent's pid, as the control page says, and that page's path if the agent locks it."""
        if self.agent is None or (self.agent.pid, self.agent.page) != (pid, page):
            self.agent = Agent(pid, page)

    def wait_at_plan_end(self) -> None:
        self._wait(layout.PARKED, AT_PLAN_END)
        self._ring.ints[layout.I_PARKED] = 0

    def wait_before_save(self, call: str, target: str) -> None:
        self._ring.note({"note": "save-guard", "call": call, "target": target[:400]})
        self._wait(layout.SAVE_GUARDED, BY_SAVE_GUARD)
        raise RunEnded(
            "datawait: %s (%s) refused: this run trained on repeated batches to measure its loader, "
            "and the datawait that was to end it is gone" % (call, target)
        )

    def _wait(self, code: int, parked: int) -> None:
        now = self._clock()
        self._ring.mark(code, now, now)
        self._ring.ints[layout.I_PARKED] = max(parked, self._ring.ints[layout.I_PARKED])
        while (self.agent is None or not self.agent.gone()) and self._clock() - now < LONGEST:
            self._sleep(NAP)
