"""Bytes of records, rings and notes, as probe/recording/SPEC.md lays them down (version 1).

Every record packer takes ``(seq, kind, flags, ref, *payload, seq)`` and yields 64 bytes. Unknown is all bits
set; the hook never writes 0 for something it could not see.
"""

from __future__ import annotations

from struct import Struct

UNKNOWN16 = 0xFFFF
UNKNOWN32 = 0xFFFFFFFF
UNKNOWN64 = 0xFFFFFFFFFFFFFFFF

# --- kinds, SPEC §2 ---------------------------------------------------------------------------------------------
FETCH, STEP, ITERATOR, MARK, BLOCK, EXPOSED, SOLO, WORKER = 1, 2, 3, 4, 5, 6, 7, 8
BATCH, COST, IO, READ, STACK, TRANSFORM, SAMPLER = 32, 33, 34, 35, 36, 37, 38

# FETCH flags
NESTED, OFF_THREAD, CACHED, END, DISCARDED, FIRST, ERROR, NO_GRAD = 1, 2, 4, 8, 16, 32, 64, 128
UNCOUNTED = NESTED | OFF_THREAD | CACHED | DISCARDED  # no wait of the training: kept out of the totals
# ITERATOR flags
RESET = 1
# BATCH flags
RAISED = 1
# READ flags
REQUEST = 1
# EXPOSED flags
EMULATED = 1

# MARK codes
VALIDATION, SAVE, DISABLED, TEST_BEGAN, SAVE_GUARDED, PARKED, ENDED, CUDA_SEEN = 1, 2, 3, 4, 5, 6, 7, 8

_HEAD = "<IBBH"  # seq, kind, flags, ref; every payload below is 52 bytes, the last I is seq again
pack_fetch = Struct(_HEAD + "QQIIIIQII4xI").pack
# The same for a fetch without flags, whose thread's CPU was not read, outside a block; head and tail are ready bytes.
pack_plain = Struct("<I4sQQIII12sI8xI").pack
pack_plain_head = Struct("<BBH").pack
pack_plain_tail = Struct("<IQ").pack
pack_step = Struct(_HEAD + "QQIIQ20xI").pack
pack_iterator = Struct(_HEAD + "QQIIII20xI").pack
pack_mark = Struct(_HEAD + "QQQQ20xI").pack
pack_block = Struct(_HEAD + "QQIIIIQII4xI").pack
pack_exposed = Struct(_HEAD + "QQQII20xI").pack
pack_solo = Struct(_HEAD + "Q8xII28xI").pack
pack_worker = Struct(_HEAD + "QIII32xI").pack
pack_batch = Struct(_HEAD + "QQQQIIII4xI").pack
pack_cost = Struct(_HEAD + "QQQQQIIII").pack
pack_io = Struct(_HEAD + "QQQQQ12xI").pack
pack_read = Struct(_HEAD + "QII36xI").pack
pack_stack = Struct(_HEAD + "QQQQII12xI").pack
pack_transform = Struct(_HEAD + "QQQI24xI").pack
pack_sampler = Struct(_HEAD + "QQQQQQ4xI").pack
pack_raw = Struct(_HEAD + "52sI").pack

# --- ring, SPEC §4 ----------------------------------------------------------------------------------------------
MAGIC = b"DWRING1\n"
VERSION = 1
HEADER_BYTES = 65536
RECORD_BYTES = 64
TOTALS_AT, TOTALS_BYTES, TOTALS_SLOTS = 1024, 64, 32
NOTES_AT = 4096
pack_ring_head = Struct("<8sIIII").pack

# Indexes into the header seen as u64 (offset / 8) …
Q_HEAD, Q_NOTE_BYTES, Q_NOTES_LOST, Q_ERRORS = 3, 4, 5, 6
Q_MONOTONIC, Q_REALTIME, Q_STEP, Q_BLOCKS, Q_FETCHES, Q_LENGTH, Q_BATCH = 8, 9, 10, 12, 13, 14, 15
Q_OWN_NS, Q_OWN_FETCHES = 16, 17
# … and as u32 (offset / 4)
I_STATE, I_HOOK, I_UNIT, I_PARKED = 14, 15, 22, 23

OPEN, CLOSED = 1, 2
OBSERVING, OFF = 1, 2
BY_FETCH, BY_OPTIMIZER = 0, 1

MAIN_CAPACITY, WORKER_CAPACITY, LEAST_CAPACITY = 65536, 16384, 1024
