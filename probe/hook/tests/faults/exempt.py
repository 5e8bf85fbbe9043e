"""What a fault may do that is not "training ends as ever, and the spool tells". test_every_function.py holds each to
its reason."""

from __future__ import annotations

from typing import Dict, Set

# Functions of the hook's that stand between the script and the first `try`. Nothing of ours is around them, so an error
# at their very entry or end would be the script's to see. No statement is there: what they call is injected instead.
FRAMES = {
    "fetch.fetch", "fetch._aside", "fetch._raised", "fetch._finish_aside", "fetch._source", "fetch._failed",
    "stream.now", "foreign.own",
    "stream.failed", "stream.complain", "stream.ring_for", "optimizer._eager", "worker._end", "datawait._failed",
    "lateimports.LateImports._has_run", "lateimports.LateImports._found", "watching.Watched.__iter__",
    "watching.WatchedIterator.<lambda>", "fetch.observing.__next__", "sitecustomize._chain", "saving._begin",
    "saving._refuse_in_child",
    "cachedtest.CachedTest.serve", "cachedtest.CachedTest._live", "cachedtest.CachedTest._enter",
    "cachedtest.CachedTest._epoch_over", "cachedtest.CachedTest._fill", "cachedtest.CachedTest._void",
    "cachedtest.CachedTest._fail", "source.Source.live_next", "source.Source._shift_by",
    "stands._ask",
}  # fmt: skip

# Functions in which nothing of ours comes after the last statement, which does what cannot be done twice: it uses up a
# slot of the epoch, or makes the file of a ring.
DONE_LAST = {
    "source.Source.skip_slot", "pulls.Pulls.skip", "block.CachedBlock.give", "block.BusyBlock.give", "ring._create",
    "trials.TrialBlock.give",
}  # fmt: skip

# What the hook stands in front of: an error in there belongs to the script and has to reach it.
ORIGINALS = {
    "call", "original", "run", "finder.find_spec", "spec.loader.exec_module", "self.original", "self._original",
    "self._inner", "self._inner.get", "self._inner.put", "iter", "next", "super().__iter__", "self._it",
    "source.live_next", "fetching.fetch", "self._found", "core.test.serve", "importlib.import_module",
}  # fmt: skip

# Written in C, and given the hook's own objects or any object at all: they run no Python code, so nothing can fail.
SAFE = {"get_ident", "isinstance", "getattr", "hasattr", "hash", "type", "list", "len", "any", "name.startswith",
        "is_compiling", "loader.__dict__.pop", "_inherited.append", "reference", "_Unseen",
        "self._kit.pools.get", "_stepping.add", "_stepping.discard"}  # fmt: skip
STANDARD_LIBRARY = {"importlib.util.module_from_spec", "import importlib.util", "import importlib", "import pydoc"}

# Where nothing tells of an error: what it changes in the recording, by its names in recorded.py. Nothing of that is a
# number: it is unknown, or the block of the cached-data test is void and says so.
UNKNOWN = {"unknown"}
LENGTHS = {"ITERATOR", "loaders"}
VOID = {"BLOCK", "EXPOSED", "batches", "fetches", "unknown"}
TRIED = VOID | {"notes"}  # a block that failed has none of what is tried
UNCLOSED = {"state", "unknown", "batches", "MARK"}
NOTHING: Set[str] = set()
UNTOLD: Dict[str, Set[str]] = {
    "stream._threads": UNKNOWN, "stream.start_method": UNKNOWN, "stream.parent_pid": NOTHING,
    "identity.boot_id": UNKNOWN, "identity.pid_namespace": UNKNOWN, "torchhook._ready": UNKNOWN,
    # Where it is not known how many batches wait, a loader is never seen to be idle: its blocks are void.
    "torchhook._ready.ready": VOID | {"SOLO"}, "torchhook._length": LENGTHS, "torchhook._length_of": LENGTHS,
    "torchhook._length_of_dataset": LENGTHS,
    "torchhook.describe": LENGTHS, "samplers.measurable": LENGTHS, "samplers._is_known": LENGTHS,
    "samplers._chain": LENGTHS, "samplers.attributes": LENGTHS, "samplers.measures": LENGTHS,
    "watching._length": LENGTHS,
    "meter.Meter.run_queue": UNKNOWN, "meter.Meter.io_counters": UNKNOWN, "meter._open": UNKNOWN,
    "meter.audit.hook": UNKNOWN, "place.check_file": NOTHING,
    "stream.finish": UNCLOSED, "worker._end": UNCLOSED,  # as of a process that was killed
    "replay.ReplayPool.on_device": VOID, "legs.DeviceBlock._device_room": VOID, "source.Source.to_device": VOID,
    "source.Source.device": VOID,
    "foreign.own": NOTHING, "foreign.foreign": NOTHING, "foreign._is_handler": NOTHING, "foreign._code": NOTHING,
    "control._held": NOTHING, "control._born": NOTHING,  # one look at whether the agent lives; there are others
    "worker._is_root": NOTHING,  # an OSError is a folder that is gone, and no root of ours
    # All of it stands in a try; before that, an OSError is an argument that the save will refuse. It begins, which is
    # noted, and its own open() is judged.
    "guardrules.Rules.saving.harmful": {"MARK"},
    "stream._note_error": NOTHING, "saveguard._doubtful": NOTHING, "sitecustomize._hidden": NOTHING,
    "sitecustomize._seen": NOTHING, "sitecustomize._shared": NOTHING,
    "stands.Stand.__call__": NOTHING, "legs.DeviceBlock.admit": VOID,
    **{"trials.%s" % name: TRIED for name in (
        "Trial.__init__", "Trial.__next__", "_loader", "_endlessly", "_cut", "_repeated", "_Endless.__init__",
        "unobserved",
    )},
    "stream.testable": NOTHING, "stream.for_me_alone": NOTHING,  # a permission that cannot be judged is none
    "reads.Reads.opened": NOTHING,  # told when the next batch begins, if one does
    # Whether a thread ran or waited; and what a fork does that has no ring.
    "stacks.State.__init__": UNKNOWN, "stacks.State.read": UNKNOWN, "stacks.State.runs": UNKNOWN,
    "stacks.restore": NOTHING, "stacks._in_forked_child": NOTHING, "optimizer._in_forked_child": NOTHING,
}  # fmt: skip
# A file that is not there is none: no rank has served a batch, or no agent has made a page.
ABSENT = {"guardchild.begun", "guardchild._private", "control.ControlPage._mapped"}
# Of whole modules: a batch that cannot be taken apart is copied whole; a call whose arguments cannot be judged is let
# through, for it will raise what is wrong with them.
UNTOLD_MODULES = {"replay", "guardpaths", "guardrules", "guardnames", "commands"}

# In a child of a rank, which has no ring, when the hook opens a file of /proc for itself.
RINGLESS = {"stands.Stand.__call__", "stands._ask"}

# The last that can tell: where it fails nothing can, and training goes on.
LAST_WORDS = {"datawait._failed", "stream.refuse", "stream._folder", "stream._beside", "stream._count",
              "stream._note_error", "stream._describe",
              "stream.failed", "place._largest_file", "place.may_write", "place.own_in", "place.if_made",
              "sitecustomize._arm",
              "sitecustomize._refused", "sitecustomize._chain"}  # fmt: skip

# The script's own: it called them and may be told of an error. The busy log of the device has tests of its own.
ITS_OWN = {"emulated"}

# Functions that no scenario reaches: what has no statements, what needs a device, and what only tests of their own
# reach.
WITHOUT_STATEMENTS = {
    "block.Block.admit", "block.Block.start", "block.Block.took", "events.DeviceClock.between",
    "events.DeviceClock.happened", "events.DeviceClock.record", "pulls.Source.iterator",
    "pulls.Source.last_sent", "pulls.Source.live_next",
    "pulls.Source.outstanding", "pulls.Source.ready", "pulls.Source.record", "pulls.Source.skip_slot",
    "pulls.Source.synchronize", "pulls.Source.to_device", "replay.OpaqueBatch.pin", "track.Track.write_iterator",
    "track._none", "fetch._always",
    "optimizer._eager",  # stands in for what PyTorch from 2.1 on has
}  # fmt: skip
# test file -> functions
TESTED_ELSEWHERE: Dict[str, Set[str]] = {
    "test_saveguard.py": {
        "guardnames.log", "guardpaths.Ages._aged", "guardpaths.Ages._foreign", "guardpaths.Ages._lasting",
        "guardpaths.Ages._scratch", "guardpaths._mode", "guardrules._replaces", "saveguard.SaveGuard._imported",
        "guardrules.Rules.opens_by", "guardrules.Rules.requests", "guardrules.Rules.saving_by", "stands.Stand.__repr__",
        *("guardrules.Rules.%s.<lambda>" % rule for rule in (
            "deletes", "deletes_tree", "empties", "makes_folder", "opens", "opens_by", "opens_descriptor", "popens",
            "renames", "requests", "runs", "touches",  # what was refused, for a person: the run ends
        )),
    },
    "test_guardcommands.py": {"commands._cloud"},
    "test_guardchild.py": {
        "guardchild._tell", "guardchild.hold", "saveguard.wait_forever", "cachedtest.CachedTest._save_seen_in_child",
    },
    "test_events.py": {
        "events._beginning.capture_begin", "events._ending.capture_end", "events._replaying.replay",
    },
    "test_replay.py": {
        "replay.ArrayLeaf.pin", "replay.FrozenBatch.pin", "replay.ReplayPool._drop", "replay.ReplayPool.pin",
        "replay.TensorLeaf.pin",
    },
    "test_cachedtest_refill.py": {"pulls.Pulls._stillness", "pulls.Pulls.make_up", "pulls.LoaderRaised.__init__"},
    "test_cachedtest_torch.py": {
        "source._moved", "source.Source.last_sent", "source.Source.outstanding", "source.Source.__init__.<lambda>",
    },
    "test_lifetimes.py": {"foreign.without_frames"},
    "test_reentry.py": {"ring._is_flushing"},
    "test_trials.py": {"trials._whole_batches", "trials._whole_batches.__getitems__", "trials.Memo.__len__"},
    "test_reads.py": {"reads.Reads.asked", "reads.Reads._halve", "reads.Reads._give_up"},
    "test_emulated.py": {"emulated._Log._give_up", "emulated._is_worker"},
    "test_ring.py": {"ring.<lambda>", "ring.Ring._wrap", "ring.Ring.hold", "ring.Ring.hold_back", "ring.Ring.record"},
    "test_watch.py": {
        "datawait.install", "watching.WatchedIterator.__getattr__", "watching.WatchedIterator.__iter__",
    },
    "test_worker.py": {"worker.IndexQueue.__getattr__", "worker.TimedCollate.__getattr__", "meter.Meter.close"},
    # A scenario may be over before a stack was looked at: what a look calls fails there, one function after the other.
    "test_stacks.py": {
        *("calls.Calls.%s" % name for name in ("add", "changed", "path", "_follow", "_meet", "_number")),
        *("calls.%s" % name for name in ("_is_loop", "_name", "_of_a_class")),
        *("stacks.Sampler.%s" % name for name in ("catch_up", "fail", "look", "pace", "write_when_due")),
        "stacks.State.read", "stacks.State.runs", "stacks.shorten", "stacks.restore",
        *("transforms.%s" % name for name in (
            "Timings.__init__", "Timings.took", "Timings.timed", "_Timed.__init__", "_begins", "_each", "_ends",
            "_fail", "_leaves", "_name", "_nobody", "_now", "_timed_call", "_timed_call.call", "_timed_list",
            "_timed_list.through",
        )),
        "fetch._built_for",
    },
    "test_torch.py": {"place.own_folder", "loaders._data", "torchhook._index.delivered", "lateimports.LateImports.end"},
    "test_fetch.py": {"stream.Core.__init__", "stream._is_child"},
}  # fmt: skip
