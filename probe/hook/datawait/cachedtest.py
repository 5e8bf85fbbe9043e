"""The cached-data test: the same training steps on batches from memory, compared with live ones (DESIGN §6).

``poll`` is asked once per step and costs about 100 ns while there is nothing to do. While it answers True every
training fetch is served by ``serve``, which runs the blocks of the plan on the control page one after the other and
otherwise passes the loader's own batches through. Nothing is decided between ranks: all read the same plan and count
the same steps.

After the first cached block the model has seen batches twice. The run must then neither save nor delete anything: the
save-guard is armed, the run parks inside ``next()`` at the end of the plan, and the agent ends it there.

An error in here ends the test, not the training: it is noted, the block is void, the loader's own batches follow.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from typing import Any, Callable, Optional

from . import control, guardchild, layout, legs, stream
from .block import LIVE, Block, Kit
from .blockrecords import BlockRecords
from .control import NEVER, BadPage, ControlPage, Plan
from .foreign import own
from .layout import CACHED
from .parking import Parking, RunEnded
from .pulls import ENDED_EARLY, EPOCH_ENDED, TOO_FEW_STEPS, UNAVAILABLE, LoaderRaised, Source, Void
from .saveguard import SaveGuard
from .saving import saves

SAVE_PATIENCE = 60_000_000_000  # ns

Complain = Callable[[int, str, BaseException], None]


class CachedTest:
    """One per main process. ``block`` is the number of the running block, 0 when there is none."""

    def __init__(
        self,
        ring: Any,
        spool_dir: str,
        clock: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], None] = time.sleep,
        complain: Complain = stream.complain,
    ) -> None:
        self.block = 0
        self._ring = ring
        self._clock = clock
        self._sleep = sleep
        self._complain = complain
        self._kit = Kit(ring, clock, sleep)
        self._spool = spool_dir
        self._guard = SaveGuard(self._save_seen, spool_dir, self._save_seen_in_child)
        self._page = ControlPage(spool_dir)
        self._words = self._page.words
        self._seen = 0  # generation of the page that was read last
        self._plan: Optional[Plan] = None
        self._parking = Parking(ring, clock, sleep)
        self._wake = 0  # first step at which there is something to do
        self._routed = False  # what poll answers until then
        self._step = 0
        self._boundary = False  # the next serve() is the first of a step
        self._running: Optional[Block] = None
        self._records = BlockRecords(ring, clock)
        self._park_due = False
        self._contaminated = False
        self._broken = False
        self._thread = threading.get_ident()  # that trains
        os.register_at_fork(after_in_child=functools.partial(_in_child, weakref.ref(self)))

    # --- asked by the fetch core -----------------------------------------------------------------------------------

    def poll(self, step: int) -> bool:
        """Whether this step's fetches are to be served; step = steps finished."""
        if step < self._wake and self._words[2] == self._seen:
            return self._routed
        try:
            return self._advance(step)
        except Exception as error:
            self._fail("poll", error)
            return self._routed

    def serve(self, source: Source) -> Any:
        """The batch of one training fetch. Raises what the loader raised, or StopIteration at the epoch's end."""
        raised: Optional[BaseException] = None
        batch = LIVE
        try:
            if self._park_due:
                self._park(source)
            batch = self._serve(source)
        except StopIteration as ended:
            raised = ended
        except LoaderRaised as loader:
            raised = loader.error
        except Exception as error:
            self._fail("serve", error)
        if raised is not None:
            if isinstance(raised, StopIteration):
                self._epoch_over(source)
            else:
                self._void(ENDED_EARLY, "the loader raised")
            try:
                raise raised
            finally:
                del raised  # this frame would keep it, and it this frame: the script's iterator, and its workers
        return self._live(source) if batch is LIVE else batch

    # --- the plan --------------------------------------------------------------------------------------------------

    def _advance(self, step: int) -> bool:
        self._step = step
        self._boundary = True
        self._thread = threading.get_ident()
        if not self._page.mapped:
            if not self._page.look(self._clock()):
                if self._page.trouble is not None:
                    self._complain(stream.IN_TEST, "control page", self._page.trouble)
                return False
            self._words = self._page.words
        if self._words[2] != self._seen:
            self._read()
        plan = self._plan
        if plan is None:
            return self._routed
        if plan.mode == control.PARK or step >= plan.park:
            self._park_due = True
            return True
        due = self._due(step) is not None
        self._rearm()
        return due or self._routed

    def _read(self) -> None:
        """Takes over a new plan. One that makes no sense changes nothing."""
        generation = self._words[2]
        try:
            read = self._page.read()
        except BadPage as error:
            self._seen = generation
            self._complain(stream.IN_TEST, "control page", error)
            return
        if read is None:  # being written: again at the next step
            return
        self._seen, plan = read
        self._parking.know(plan.agent, self._page.path if plan.held else None)
        self._kit.cap = plan.cap
        self._plan = plan
        if plan.mode == control.OBSERVE:
            self._void(ENDED_EARLY)

    def _due(self, step: int) -> Optional[control.PlannedBlock]:
        """The block to begin at this step. One that lies behind already is written off."""
        if self._plan is None or self._plan.mode != control.TEST or self._broken or self._running is not None:
            return None
        for planned in self._plan.blocks:
            if planned.number <= self._records.done:
                continue
            if planned.first > step:
                return None
            if planned.end > step:
                return planned
            self._records.void(planned, Void(TOO_FEW_STEPS), step)
        return None

    def _rearm(self) -> None:
        """When poll has to look again: at every step while a block runs, else when the plan says so."""
        self._routed = self._running is not None or self._contaminated
        self._wake = NEVER
        if self._running is not None:
            self._wake = 0
        elif self._plan is not None:
            ahead = [planned.first for planned in self._plan.blocks if planned.number > self._records.done]
            waits = self._plan.mode == control.TEST and not self._broken
            self._wake = min([self._plan.park] + (ahead if waits else []))

    # --- serving ---------------------------------------------------------------------------------------------------

    def _serve(self, source: Source) -> Any:
        try:
            if self._boundary:
                self._boundary = False
                self._turn(source)
            running = self._running
            served = None if running is None else running.serve(source)
        except Void as void:
            self._void(void.reason, void.why)
            return LIVE
        if running is None or served is None:
            return LIVE
        try:  # the batch has used up a slot of the epoch: it goes to training whatever becomes of its record
            source.record(served.enter, served.leave, CACHED)
            running.booked(served.leave - served.enter)
        except Exception as error:
            self._fail("serve", error)
        return served.batch

    def _turn(self, source: Source) -> None:
        """A step boundary: a block may end, count or begin."""
        step, running = self._step, self._running
        if running is not None and step >= running.planned.end:
            self._finish(running, step, source)
        elif running is not None:
            running.boundary(step, source)
        if self._running is None:
            due = self._due(step)
            if due is not None:
                self._begin(due, step)
            self._rearm()

    def _begin(self, planned: control.PlannedBlock, step: int) -> None:
        try:
            running = legs.make(planned, step, self._kit)
        except Void as void:
            self._records.void(planned, void, step)
            return
        self._running = running
        self._number(planned.number)
        os.environ["DATAWAIT_TEST"] = stream.for_me_alone()  # children this rank has from here on are no ranks
        if planned.leg != control.LIVE and not self._contaminated:
            self._await_saves()
            self._arm()
            self._contaminated = True
            now = self._clock()
            self._ring.mark(layout.TEST_BEGAN, now, now)

    def _arm(self) -> None:
        """Before the first batch comes twice. A run whose guard cannot be armed trains on its own batches alone."""
        try:
            guardchild.begin(self._spool, self._guard.arm(), self._parking.agent)
        except Exception:
            self._guard.disarm()
            raise

    def _await_saves(self) -> None:
        """A save on another thread, begun with a clean model, is let finish: the run's end would cut it off."""
        deadline = self._clock() + SAVE_PATIENCE
        while saves.running and self._clock() < deadline:
            self._sleep(0.01)

    def _finish(self, running: Block, step: int, source: Source) -> None:
        counted = running.end(step, source)
        self._close()
        self._records.counted(running.planned, counted, running.ready)

    def _live(self, source: Source) -> Any:
        """The loader's own batch; or what keeps an epoch as long as it should be."""
        enter = self._enter(source)
        if enter is None:
            raise StopIteration
        try:
            batch = source.live_next(0)
        except StopIteration:
            self._void(EPOCH_ENDED)
            batch = self._fill(source)
            if batch is LIVE:
                raise
            return batch
        if self._running is not None:
            try:
                self._running.took(source, batch, self._clock() - enter)
            except Exception as error:
                self._fail("live block", error)
        return batch

    def _enter(self, source: Source) -> Optional[int]:
        """When the loader is about to be asked; None where the epoch has had all its batches."""
        try:
            if self._contaminated and self._kit.pulls.over(source):
                self._epoch_over(source)
                return None
            return self._clock()
        except Exception as error:
            self._fail("end of epoch", error)
        try:  # the loader, which was spared some, may have more than the epoch
            return None if source.length is not None and source.batch_index >= source.length else 0
        except Exception as error:
            own(error)
            return 0

    def _epoch_over(self, source: Source) -> None:
        """The epoch ends without its loader being asked: to a reader it ends like any other."""
        self._void(EPOCH_ENDED)
        try:
            now = self._clock()
            source.record(now, now, layout.END)
        except Exception as error:
            self._fail("end of epoch", error)

    def _fill(self, source: Source) -> Any:
        """A batch from memory where the loader has come to its end too early, else LIVE."""
        pulls, pool = self._kit.pulls, self._kit.pools.get(source.loader)
        try:
            if not pool or not pulls.lacks(source):
                return LIVE
            enter = self._clock()
            batch = pool.serve()
            pulls.make_up(source)
        except StopIteration:
            return LIVE
        except Exception as error:
            self._fail("end of epoch", error)
            return LIVE
        try:
            source.record(enter, self._clock(), CACHED)
        except Exception as error:
            self._fail("end of epoch", error)
        return batch

    def _void(self, reason: int, why: Optional[str] = None) -> None:
        """Abandons the running block, if there is one. It is called on the way out of errors, so none of its own."""
        try:
            running = self._close()
            if running is not None:
                void = Void(reason, why)
                self._records.void(running.planned, void, running.first, running.began, running.ready)
        except Exception as error:
            self._complain(stream.IN_TEST, "cached-data test: void block", error)

    def _close(self) -> Optional[Block]:
        """No block runs from here on; returns the one that did."""
        running, self._running = self._running, None
        if running is not None:
            running.close()
            self._number(0)
            self._rearm()
        return running

    # --- the end of the run ----------------------------------------------------------------------------------------

    def _park(self, source: Source) -> None:
        """Waits inside ``next()`` for the agent to end the run. With the agent gone, training goes on."""
        self._close_block(source)
        self._parking.wait_at_plan_end()
        self._park_due = False
        self._plan = None
        self._complain(stream.IN_TEST, "parked", RuntimeError("the agent is gone: training goes on"))
        self._rearm()

    def _close_block(self, source: Source) -> None:
        """A plan parks where its last block ends: that block is finished, any other is abandoned."""
        running = self._running
        try:
            if running is not None and self._boundary and self._step >= running.planned.end:
                self._finish(running, self._step, source)
        except Void as void:
            self._void(void.reason, void.why)
        self._void(ENDED_EARLY)

    def _save_seen(self, call: str, target: str) -> None:
        """The save-guard's verdict, on whatever thread the save was tried. Does not return."""
        self._park_due = True  # for the training thread, if this is another one
        self._wake = 0
        try:
            if threading.get_ident() == self._thread:
                self._void(ENDED_EARLY)
            self._parking.wait_before_save(call, target)
        except Exception as error:
            self._complain(stream.IN_TEST, "parking before a save", error)
            raise RunEnded("datawait: %s refused: %s" % (call, error)) from error

    def _save_seen_in_child(self, call: str, target: str) -> None:
        guardchild.hold(self._spool, self._parking.agent, call, target)

    # --- failing and forking ---------------------------------------------------------------------------------------

    def _fail(self, where: str, error: BaseException) -> None:
        """Ends the test. Parking stays, and so does the guard: the model is what it is."""
        own(error)
        self._broken = True
        try:
            self._complain(stream.IN_TEST, "cached-data test: " + where, error)
            self._void(UNAVAILABLE, "%s: %s" % (type(error).__name__, error))
            self._rearm()
        except Exception as another:
            own(another)

    def _number(self, block: int) -> None:
        """The block of the fetches to come; the core puts it into their records."""
        self.block = stream.core.block = block

    def _forget(self) -> None:
        """A forked child is no rank of this job."""
        self._words = self._page.words = (0, 0, 0)
        self._seen = 0
        self._wake = NEVER
        self._routed = self._park_due = self._boundary = False
        self._running = None
        self._number(0)


def _in_child(reference: "weakref.ref[CachedTest]") -> None:
    try:
        test = reference()
        if test is not None:
            test._forget()
    except Exception as error:
        stream.failed(stream.IN_TEST, "after a fork", error)
