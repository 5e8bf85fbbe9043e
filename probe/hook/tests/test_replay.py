"""Batches served from memory: the same bits in fresh containers, whatever the script does to them."""

from __future__ import annotations

import collections
import dataclasses
import threading

import pytest

from datawait.replay import FrozenBatch, OpaqueBatch, ReplayPool, TooLarge, freeze, size

ROOM = 1 << 30

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Sample:
    name: str
    values: list


class Encoding(collections.UserDict):
    """Like transformers' BatchEncoding."""


def pool_of(*batches, room=ROOM):
    pool = ReplayPool()
    for batch in batches:
        assert pool.keep(batch, room - pool.nbytes)
    return pool


def test_containers_are_fresh_and_equal():
    batch = {"a": [1, (2, b"three")], "p": Point(4, {5}), "s": Sample("six", [7]), "e": Encoding(k=[8])}
    frozen = freeze(batch, ROOM)
    one, two = frozen.thaw()[0], frozen.thaw()[0]
    assert one == two == batch and type(one["p"]) is Point and type(one["e"]) is Encoding
    one["a"].append(9), one.pop("p"), one["s"].values.clear(), one["e"].update(k=0)
    assert two == batch and frozen.thaw()[0] == batch


def test_the_pool_goes_round_and_starts_again_when_counting_begins():
    pool = pool_of("a", "b", "c")
    assert [pool.serve() for _ in range(2)] == ["a", "b"]
    pool.start()
    assert [pool.serve() for _ in range(5)] == ["a", "b", "c", "a", "b"]
    pool.rewind()
    assert pool.serve() == "a"


def test_the_cap():
    frozen = freeze(bytes(100), ROOM)
    assert 100 < frozen.nbytes < 150
    with pytest.raises(TooLarge):
        freeze(bytes(100), frozen.nbytes - 1)
    pool = pool_of(bytes(100), room=300)
    assert pool.keep(bytes(100), 300 - pool.nbytes) and not pool.keep(bytes(100), 300 - pool.nbytes)
    assert len(pool) == 2 and 200 < pool.nbytes <= 300
    pool.clear()
    assert len(pool) == pool.nbytes == 0
    with pytest.raises(LookupError):
        pool.serve()


def test_what_cannot_be_pickled_is_deep_copied():
    @dataclasses.dataclass
    class Local:
        values: list

    frozen = freeze(Local([1]), ROOM)
    assert isinstance(frozen, OpaqueBatch)
    one = frozen.thaw()[0]
    one.values.append(2)
    assert frozen.thaw()[0] == Local([1])


def test_what_cannot_be_copied_is_served_itself():
    batch = [threading.Lock()]
    frozen = freeze(batch, ROOM)
    assert frozen.thaw()[0] is batch and frozen.thaw(True)[0] is batch
    pool = pool_of(batch)
    pool.pin(), pool.start()
    assert pool.serve() is batch


class Unloadable:
    def __reduce__(self):
        return int, ("not a number",)


def test_what_pickles_and_does_not_come_back_is_not_kept_as_a_pickle():
    batch = [Unloadable()]
    assert freeze(batch, ROOM).thaw()[0] is batch


# --- torch ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_tensors_are_bit_identical_and_private(torch):
    x = torch.randn(4, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    batch = {
        "x": x,
        "half": torch.randn(3).half(),
        "ids": [torch.arange(5), torch.tensor(True)],
        "nan": torch.tensor(float("nan")),
    }
    frozen = freeze(batch, ROOM)
    kept = x.clone()
    x.zero_()
    served = frozen.thaw()[0]
    assert torch.equal(served["x"], kept) and served["x"].stride() == kept.stride()
    assert served["half"].dtype == torch.float16 and torch.equal(served["ids"][0], torch.arange(5))
    assert served["nan"].isnan() and not frozen.moved()
    assert frozen.nbytes >= 4 * 3 * 8 * 8 * 4 + 6 + 40 + 1


def test_servings_share_memory_but_not_shape(torch):
    frozen = freeze(torch.arange(6.0).view(2, 3), ROOM)
    one, two = frozen.thaw()[0], frozen.thaw()[0]
    assert one.data_ptr() == two.data_ptr() and one is not two
    one.requires_grad_()
    assert not two.requires_grad and not frozen.moved()
    two.unsqueeze_(0).transpose_(1, 2)
    assert one.shape == frozen.thaw()[0].shape == (2, 3)
    assert frozen.moved()  # torch counts a change of shape in place as a write: a false alarm, at the price of a copy


def test_writing_into_a_serving_is_seen(torch):
    frozen = freeze({"x": torch.ones(3)}, ROOM)
    frozen.thaw(True)[0]["x"].add_(1)
    assert not frozen.moved()  # that was a copy
    frozen.thaw()[0]["x"].add_(1)
    assert frozen.moved()


def test_a_script_that_writes_into_its_batches_gets_a_copy_each_time(torch):
    pool = pool_of(*({"x": torch.full((3,), float(value))} for value in range(3)))
    for _ in range(2):
        pool.serve()["x"].sub_(100)  # while the block settles
    pool.start()
    assert pool.mutating
    for turn in range(7):
        x = pool.serve()["x"]
        assert x.tolist() == [float(turn % 3)] * 3
        x.sub_(100)
    assert len(pool) == 3


def test_a_batch_that_was_spoiled_after_all_is_dropped(torch):
    pool = pool_of(*(torch.full((3,), float(value)) for value in range(3)))
    pool.serve(), pool.start()
    assert not pool.mutating
    pool.serve().add_(100)
    seen = []
    for _ in range(4):
        x = pool.serve()
        seen.append(x[0].item())
        x.add_(100)
    assert seen == [1, 2, 1, 2] and pool.mutating and len(pool) == 2


def test_the_last_batch_spoiled_leaves_nothing(torch):
    pool = pool_of(torch.ones(3))
    pool.start()
    pool.serve().add_(1)
    with pytest.raises(LookupError):
        pool.serve()


def test_one_tensor_in_two_places_stays_one(torch):
    x = torch.ones(1000)
    frozen = freeze({"a": x, "b": [x]}, ROOM)
    served = frozen.thaw()[0]
    assert served["a"] is served["b"][0] and frozen.nbytes < 2 * 4000


def test_odd_tensors(torch):
    sparse = torch.eye(3).to_sparse()
    with torch.inference_mode():
        inference = torch.ones(3)
    parameter = torch.nn.Parameter(torch.ones(2))
    frozen = freeze([sparse, inference, parameter, torch.ones(2, requires_grad=True)], ROOM)
    for _ in range(2):
        s, i, p, g = frozen.thaw()[0]
        assert torch.equal(s.to_dense(), torch.eye(3)) and i.tolist() == [1, 1, 1]
        assert p.requires_grad and g.requires_grad and g.is_leaf
        (g * 2).sum().backward()
    assert not frozen.moved()


def test_packed_sequences_and_nested_objects(torch):
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    served = freeze({"p": packed, "n": Encoding(ids=torch.arange(3))}, ROOM).thaw()[0]
    assert type(served["p"]) is type(packed) and torch.equal(served["p"].data, packed.data)
    assert torch.equal(served["n"]["ids"], torch.arange(3))


def test_freezing_takes_no_random_number(torch):
    state = torch.get_rng_state()
    freeze({"x": torch.ones(3)}, ROOM).thaw()
    assert torch.equal(torch.get_rng_state(), state)


def test_the_cap_is_asked_before_a_tensor_is_copied(torch):
    huge = torch.empty(1).expand(1 << 40)
    with pytest.raises(TooLarge):
        freeze(huge, ROOM)
    assert size({"x": torch.ones(10), "y": [torch.ones(5)], "z": Sample("n", [torch.ones(5)])}) >= 80


def test_pinned_loaders_get_pinned_batches(torch, monkeypatch):
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self, *a: pinned.append(self) or self.clone())
    pool = pool_of({"x": torch.ones(3)}, {"x": torch.zeros(3)})
    pool.pin(), pool.pin()
    assert len(pinned) == 2
    pool.start()
    assert pool.serve()["x"].tolist() == [1, 1, 1] and len(pinned) == 2
    assert not pool.batches[0].moved()


def test_on_device_adopts_what_was_moved(torch):
    pool = pool_of(*({"x": torch.full((4,), float(v))} for v in range(4)))
    moved = pool.on_device(lambda batch: {"x": batch["x"].clone()}, lambda leaves: 100)
    assert len(moved) == 2
    moved.start()
    assert moved.serve()["x"].tolist() == [0.0] * 4
    assert len(pool.on_device(lambda batch: batch, lambda leaves: 1)) == 0


# --- numpy ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


def test_small_arrays_are_copied_and_large_ones_watched(numpy):
    small, large = numpy.arange(10), numpy.arange(100_000)
    frozen = freeze({"s": small, "l": large}, ROOM)
    small[:] = 0
    large[:] = 0
    one, two = frozen.thaw()[0], frozen.thaw()[0]
    assert one["s"].tolist() == list(range(10)) and (one["l"] == numpy.arange(100_000)).all()
    one["s"][:] = 1
    assert two["s"][3] == 3 and not frozen.moved()
    one["l"].shape = (10, 10_000)
    assert two["l"].shape == (100_000,) and not frozen.moved()
    one["l"] *= 2
    assert frozen.moved()


def test_a_script_that_writes_into_arrays_is_found_out(numpy):
    pool = pool_of(numpy.ones(100_000), numpy.zeros(100_000))
    pool.serve()[...] = 5
    pool.start()
    assert pool.mutating
    assert [pool.serve()[0] for _ in range(3)] == [1, 0, 1]


@pytest.mark.parametrize("make", [
    lambda np: np.empty(0), lambda np: np.array(3.5), lambda np: np.arange("2020", "2024", dtype="datetime64[Y]"),
    lambda np: np.array(["a", "bc"]), lambda np: np.array([1, "x", None], dtype=object),
    lambda np: np.zeros((300, 400)).T, lambda np: np.asfortranarray(np.zeros((300, 400))),
    lambda np: np.zeros((300, 400))[::2, ::3], lambda np: np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
])  # fmt: skip
def test_arrays_of_every_sort(numpy, make):
    array = make(numpy)
    frozen = freeze([array], ROOM)
    assert isinstance(frozen, FrozenBatch)
    (served,) = frozen.thaw()[0]
    numpy.testing.assert_array_equal(served, array)
    assert served.dtype == array.dtype and not frozen.moved()
