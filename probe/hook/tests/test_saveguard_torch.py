"""Saves by PyTorch and safetensors, under whatever name a script has them, and the rotations of two frameworks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import pytest

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")

HEAD = """
import io, os, sys, time, pathlib, shutil
{before}
from datawait.saveguard import SaveGuard

class Stopped(BaseException):
    pass

def stop(call, target):
    print("STOP", call, target)
    raise Stopped

os.chdir({folder!r})
guard = SaveGuard(stop, {folder!r} + "/spool")
guard.arm()
for body in {bodies!r}:
    try:
        exec(compile(body, "body", "exec"))
        print("WENT THROUGH")
    except Stopped:
        pass
print("LEFT", sorted(os.listdir(".")))
"""

TORCH = """
import torch
from torch import save as bound_early
model = torch.nn.Linear(3, 3)

class Keeper:
    hidden = staticmethod(torch.save)

class Slots:
    __slots__ = ("out_of_reach",)

slots = Slots()
slots.out_of_reach = torch.save
"""


def run(tmp_path, *bodies, before=""):
    """Runs bodies under an armed guard in a process of its own; returns what it printed."""
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    script = tmp_path / "script.py"
    bodies = [textwrap.dedent(body) for body in bodies]
    script.write_text(HEAD.format(before=textwrap.dedent(before), folder=str(folder), bodies=bodies))
    path = [str(tmp_path), *[entry for entry in sys.path if entry]]
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env={"PYTHONPATH": ":".join(path)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_torch
def test_torch_saves(tmp_path):
    cases = {
        "torch.save(model.state_dict(), 'm.pt')": "torch.save m.pt",
        "torch.save(model.state_dict(), pathlib.Path('m.pt'))": "torch.save m.pt",
        "torch.save(model.state_dict(), open('opened.pt', 'wb'))": "open opened.pt",
        "torch.save(model.state_dict(), open('opened', 'wb'))": "torch.save opened",
        "torch.save(model.state_dict(), 'm.pt', _use_new_zipfile_serialization=False)": "torch.save m.pt",
        "torch.save(model.state_dict(), io.BytesIO())": "torch.save BytesIO",
        "torch.save(obj=model.state_dict(), f='m.pt')": "torch.save m.pt",
        "bound_early(model.state_dict(), 'm.pt')": "torch.save m.pt",
        "Keeper.hidden(model.state_dict(), 'm.pt')": "torch.save m.pt",
        "slots.out_of_reach(model.state_dict(), 'm.pt')": "torch.serialization._open_zipfile_writer m.pt",
        "torch.serialization.save(model, 'm.pt')": "torch.save m.pt",
        "torch.jit.save(torch.jit.script(model), 'm.pt')": "torch.jit.save m.pt",
        "torch.jit.script(model).save('m.pt')": "RecursiveScriptModule.save m.pt",
        "torch.package.PackageExporter('m.pt')": "PackageExporter.__init__ m.pt",
    }
    old = tmp_path / "old.pt"
    loads = "assert torch.load(%r)['x'].sum() == 3" % str(old)
    *printed, left = run(tmp_path, *cases, loads, before=TORCH + "torch.save({'x': torch.ones(3)}, %r)" % str(old))
    assert printed == ["STOP " + call for call in cases.values()] + ["WENT THROUGH"]
    assert left == "LEFT ['opened']" and (tmp_path / "work/opened").stat().st_size == 0


@needs_torch
@pytest.mark.parametrize("early", [True, False])
def test_distributed_checkpoints(tmp_path, early):
    for name in ("torch.distributed.checkpoint", "torch.distributed._shard.checkpoint"):
        try:
            __import__(name)
            break
        except Exception:  # 1.13 has it, but its module does not load under Python 3.11
            continue
    else:
        pytest.skip("no distributed checkpoints here")
    body = """
    from %s import save_state_dict, FileSystemWriter
    save_state_dict({"x": torch.ones(3)}, FileSystemWriter("ckpt"), no_dist=True)
    """
    printed = run(tmp_path, body % name, before=TORCH + ("import " + name if early else ""))
    assert printed[0].startswith("STOP " + name) and "save_state_dict" in printed[0]


def safetensors(tmp_path):
    """A stand-in laid out as the real package is."""
    package = tmp_path / "safetensors"
    package.mkdir()
    (package / "__init__.py").write_text("def serialize_file(tensors, filename): open(filename, 'w')\n")
    flavour = """
from safetensors import serialize_file
def save_file(tensors, filename, metadata=None):
    serialize_file(tensors, filename)
"""
    (package / "torch.py").write_text(flavour)
    (package / "numpy.py").write_text(flavour)
    (tmp_path / "user.py").write_text(
        "from safetensors.torch import save_file as safe_save_file\ndef save(path):\n    safe_save_file({}, path)\n"
    )


@pytest.mark.parametrize(
    "before, body",
    [
        ("import user", "user.save('m.safetensors')"),  # transformers binds it under another name at import
        ("", "import user; user.save('m.safetensors')"),  # imported after the guard was armed
        ("", "import importlib.util as u; u.find_spec('safetensors.torch'); import user; user.save('m.safetensors')"),
        ("import safetensors.numpy", "safetensors.numpy.save_file({}, 'm.safetensors')"),
        ("", "from safetensors.numpy import save_file; save_file({}, 'm.safetensors')"),
        ("import safetensors", "safetensors.serialize_file({}, filename='m.safetensors')"),
        ("", "from safetensors import serialize_file; serialize_file({}, 'm.safetensors')"),
    ],
)
def test_safetensors(tmp_path, before, body):
    safetensors(tmp_path)
    printed = run(tmp_path, body, before=before)
    assert printed[0].startswith("STOP safetensors.") and printed[0].endswith(" m.safetensors")
    assert printed[1] == "LEFT []"


OLD = """
for name in ("checkpoint-1/model.bin", "checkpoint-2/model.bin", "epoch=1.ckpt"):
    os.makedirs(os.path.dirname(os.path.join({0!r}, name)), exist_ok=True)
    path = os.path.join({0!r}, name)
    open(path, "w").write(name)
    os.utime(path, (1, 1))
"""
ALL_LEFT = "LEFT ['checkpoint-1', 'checkpoint-2', 'epoch=1.ckpt']"


@needs_torch
def test_rotation_after_a_save_is_caught_at_the_save(tmp_path):
    """Lightning: torch.save into a buffer, write the buffer, then remove the previous file."""
    body = """
    def atomic_save(checkpoint, path):
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        with open(path, "wb") as file:
            file.write(buffer.getvalue())
    atomic_save({"state_dict": model.state_dict()}, "epoch=2.ckpt")
    os.remove("epoch=1.ckpt")
    """
    printed = run(tmp_path, body, before=TORCH + OLD.format(str(tmp_path / "work")))
    assert printed == ["STOP torch.save BytesIO", ALL_LEFT]


def test_rotation_without_a_save_is_caught_at_the_deletion(tmp_path):
    """Hugging Face: rmtree of the oldest checkpoint folder, here before the next one is written."""
    printed = run(tmp_path, "shutil.rmtree('checkpoint-1')", before=OLD.format(str(tmp_path / "work")))
    assert printed == ["STOP shutil.rmtree checkpoint-1", ALL_LEFT]
    assert (tmp_path / "work/checkpoint-1/model.bin").read_text() == "checkpoint-1/model.bin"


@needs_torch
def test_children(tmp_path):
    """Loaders come and go, with their shared memory, semaphores and sockets; a loader's worker may write its cache;
    any other child that saves waits to be ended with the run."""
    loads = """
    from torch.utils.data import DataLoader, Dataset
    for strategy in ("file_system", "file_descriptor"):
        torch.multiprocessing.set_sharing_strategy(strategy)
        loader = DataLoader(list(range(40)), batch_size=4, num_workers=2, multiprocessing_context="fork")
        assert sum(len(batch) for batch in loader) == 40
    """
    caches = """
    class Caching(Dataset):
        def __len__(self):
            return 2
        def __getitem__(self, index):
            torch.save(index, "cache-%d.pt" % index)
            return index
    for batch in DataLoader(Caching(), num_workers=1, multiprocessing_context="fork"):
        pass
    """
    saves = """
    import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=torch.save, args=(model, "async.pt"))
    child.start()
    time.sleep(0.3)
    assert child.is_alive()
    child.kill()
    """
    printed = run(tmp_path, loads, caches, saves, before=TORCH)
    assert printed == ["WENT THROUGH"] * 3 + ["LEFT ['cache-0.pt', 'cache-1.pt']"]
