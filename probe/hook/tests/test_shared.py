"""A spool that all users of a machine share, or that a kubelet made: each user's rings lie in a folder of their own.

Whatever a neighbour leaves there first harms nobody. What is done as another user needs root.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest
import ringreader
from conftest import ATTACH, HOOK

from datawait import guardchild, place, stream
from datawait.control import Agent
from datawait.guardpaths import past_now

MINE = "uid-%d" % os.geteuid()
USER, NEIGHBOUR = 65534, 65533

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root may act for several users")

FETCHES = (
    "import datawait; datawait.install(); print(list(datawait.watch([1, 2, 3])))\n"
    "from datawait import stream; print(stream.core.ring and stream.core.ring.path)"
)


@pytest.fixture(params=[0o1777, 0o777], ids=["sticky", "made by a kubelet"])
def shared(spool, request):
    if os.geteuid() != 0 and request.param == 0o777:
        pytest.skip("NOT TESTED: the folder is not root's")
    os.chmod(spool, request.param)
    return spool


def become(user):
    return f"import os; os.setgroups([]); os.setresgid({user}, {user}, {user}); os.setresuid({user}, {user}, {user})\n"


def python(code, spool, user=None, folder="/", **env):
    """A Python with the hook, as datawait serve's jobs have it. What it prints, line by line."""

    def begin():
        if user is not None:
            exec(become(user))

    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": ATTACH + os.pathsep + HOOK,
        "PYTHONDONTWRITEBYTECODE": "1",
        "DATAWAIT_SPOOL": spool,
        **env,
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, capture_output=True, text=True, check=False, timeout=60, cwd=folder, preexec_fn=begin,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@as_root
def test_every_user_has_a_private_folder_of_their_own(shared):
    for user in (0, USER, USER, NEIGHBOUR):
        batches, ring = python(FETCHES, shared, user)
        assert batches == "[1, 2, 3]"
        assert os.path.dirname(ring) == os.path.join(shared, "uid-%d" % user)
        assert ringreader.Ring(ring).fetches == 3 and os.stat(ring).st_uid == user
    assert sorted(os.listdir(shared)) == ["uid-0", "uid-%d" % NEIGHBOUR, "uid-%d" % USER]  # nothing beside them
    for name in os.listdir(shared):
        assert mode(os.path.join(shared, name)) == 0o700
    assert len(ringreader.rings(os.path.join(shared, "uid-%d" % USER))) == 2


def test_a_folder_is_made_with_the_first_ring_and_not_before(shared):
    python("import datawait; datawait.install()", shared)
    python("print(1)", shared)
    assert os.listdir(shared) == []
    assert place.for_rings(shared) == os.path.join(shared, MINE) == place.for_rings(shared)


def test_no_python_leaves_a_sign_of_itself_in_it(shared):
    """Only what went wrong is told, and only in a folder that was made for rings."""
    code = "import os, resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n" + FETCHES
    assert python(code, shared) == ["[1, 2, 3]", "None"]
    (mine,) = os.listdir(shared)
    (seen,) = os.listdir(os.path.join(shared, mine))
    assert mine == MINE and seen.startswith("seen-")
    with open(os.path.join(shared, mine, seen), encoding="utf-8") as words:
        assert words.read() == "refused: files of this process may have only 5000 bytes\n"
    python("print(1)", shared)
    assert os.listdir(os.path.join(shared, mine)) == [seen]


def test_a_loader_that_is_not_seen_is_no_reason_to_stop(shared, tmp_path):
    """It would be told beside the rings; there is no such place yet."""
    (tmp_path / "torchdata" / "nodes").mkdir(parents=True)
    for name in ("torchdata/__init__.py", "torchdata/nodes/__init__.py"):
        (tmp_path / name).write_text("")
    code = "import sys; sys.path.append(%r); import torchdata.nodes\n" % str(tmp_path) + FETCHES
    _, ring = python(code, shared)
    told = [note["module"] for note in ringreader.Ring(ring).notes if note["note"] == "other-loader"]
    assert told == ["torchdata.nodes"]


@as_root
def test_a_folder_that_only_others_may_write_to_is_left_alone(spool):
    """Root's, 0755: a volume that nobody opened to the pod's user."""
    os.chmod(spool, 0o755)
    assert python(FETCHES, spool, USER) == ["[1, 2, 3]", "None"]
    assert [name for name in os.listdir(spool) if not name.startswith("seen-")] == []


@as_root
@pytest.mark.parametrize("bits", [0o777, 0o770])
def test_a_folder_that_somebody_opened_by_mistake_is_refused(spool, bits):
    os.chown(spool, USER, USER)
    os.chmod(spool, bits)
    assert python(FETCHES, spool, USER) == ["[1, 2, 3]", "None"]
    (seen,) = os.listdir(spool)
    with open(os.path.join(spool, seen), encoding="utf-8") as words:
        assert words.read() == "refused: spool %s can be written by others\n" % spool


@as_root
def test_the_folder_is_that_of_the_user_who_fetches(shared):
    """A launcher gives up root after the hook was installed."""
    _, ring = python("import datawait; datawait.install()\n" + become(USER) + FETCHES, shared)
    assert os.path.dirname(ring) == os.path.join(shared, "uid-%d" % USER)


# --- hostile neighbours -----------------------------------------------------------------------------------------


def a_link(path, elsewhere):
    os.symlink(elsewhere, path)


def a_link_to_nothing(path, elsewhere):
    os.symlink(os.path.join(elsewhere, "gone"), path)


def a_file(path, elsewhere):
    with open(path, "w", encoding="utf-8") as file:
        file.write("theirs")
    os.chmod(path, 0o666)


def a_folder(path, elsewhere):
    os.mkdir(path)
    os.chmod(path, 0o777)
    os.chown(path, NEIGHBOUR, NEIGHBOUR)


def a_closed_folder(path, elsewhere):
    os.mkdir(path)
    os.chmod(path, 0o700)
    os.chown(path, NEIGHBOUR, NEIGHBOUR)


def a_pipe(path, elsewhere):
    os.mkfifo(path)


PLANTED = {
    a_link: "is not a folder",
    a_link_to_nothing: "is not a folder",
    a_file: "is not a folder",
    a_pipe: "is not a folder",
    a_folder: "belongs to user %d" % NEIGHBOUR,
    a_closed_folder: "belongs to user %d" % NEIGHBOUR,
}


@as_root
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_a_neighbour_left_under_our_name_is_refused_and_not_touched(shared, tmp_path, plant):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    os.chown(elsewhere, USER, USER)  # a folder of the victim's own, which a link leads to
    path = os.path.join(shared, "uid-%d" % USER)
    plant(path, str(elsewhere))
    before = os.lstat(path)
    assert python(FETCHES, shared, USER) == ["[1, 2, 3]", "None"]
    after = os.lstat(path)
    assert (after.st_mode, after.st_uid, after.st_size, after.st_mtime_ns) == (
        before.st_mode, before.st_uid, before.st_size, before.st_mtime_ns,
    )  # fmt: skip
    assert os.listdir(elsewhere) == [] and os.listdir(shared) == ["uid-%d" % USER]


@as_root
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_the_reason_is_told(shared, tmp_path, plant, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    plant(os.path.join(shared, "uid-%d" % USER), str(tmp_path))
    with pytest.raises(place.Refused, match=PLANTED[plant]):
        place.for_rings(shared)
    assert place.if_made(shared) is None


@pytest.fixture
def home():
    """A folder of the victim's, with a model in it."""
    folder = tempfile.mkdtemp(prefix="home-")  # /dev/shm is no place to keep anything, to the save-guard
    with open(os.path.join(folder, "model.pt"), "w", encoding="utf-8") as model:
        model.write("weights")
    for path in (folder, os.path.join(folder, "model.pt")):
        os.chown(path, USER, USER)
    yield folder
    shutil.rmtree(folder)


SAVES = "import datawait; datawait.install(); open('model.pt', 'w').write('saved')"


@as_root
@pytest.mark.parametrize("where", ["", "uid-%d" % USER])
def test_a_neighbour_cannot_keep_a_script_from_saving(shared, home, where):
    """A flag of the save-guard in the shared folder, or in one that bears our name and is not ours."""
    folder = os.path.join(shared, where)
    if where:
        a_folder(folder, None)
    guardchild.begin(folder, past_now(), Agent(0))
    os.chmod(os.path.join(folder, guardchild.FLAG), 0o644)
    python(SAVES, shared, USER, home)
    with open(os.path.join(home, "model.pt"), encoding="utf-8") as model:
        assert model.read() == "saved"


def test_a_flag_of_our_own_still_counts(shared):
    mine = place.for_rings(shared)
    guardchild.begin(mine, 7, None)
    limit, _ = guardchild.begun(place.if_made(shared))
    assert limit == 7


def test_a_neighbour_cannot_begin_a_test(shared, hook, monkeypatch):
    """The control page that is obeyed lies beside the rings."""
    from datawait.source import begin_test

    monkeypatch.setattr(hook.core, "folder", shared)
    with open(os.path.join(shared, "control"), "wb") as page:
        page.write(b"DWCTRL1\n" + bytes(4088))
    ring = stream.ring_for("main")
    assert begin_test(ring)
    page = hook.core.test._page
    assert os.path.dirname(page.path) == os.path.join(shared, MINE)


# --- workers ----------------------------------------------------------------------------------------------------

TRAIN = """
import torch, torch.utils.data

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        return float(i)

if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context={context!r})
    print(sum(len(batch) for batch in loader))
"""


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_come_to_the_same_folder(job, spool, torch_python, context):
    os.chmod(spool, 0o1777)
    done = job(TRAIN.format(context=context), python=torch_python, DATAWAIT_JOB="resnet")
    assert (done.stdout, done.returncode) == ("16\n", 0), done.stderr
    assert os.listdir(spool) == [MINE]
    rings = ringreader.rings(os.path.join(spool, MINE))
    assert sorted(ring.declaration["producer"] for ring in rings) == ["main", "worker", "worker"]
    assert sum(len(ring.all("BATCH")) for ring in rings) == 8
    assert {ring.declaration["job"] for ring in rings} == {"resnet"}
    assert all(name.startswith("ring-") for name in os.listdir(os.path.join(spool, MINE)))


# --- what the job is called -------------------------------------------------------------------------------------

NAMED = [
    ({}, None),
    ({"DATAWAIT_JOB": "resnet", "SLURM_JOB_ID": "7", "TORCHELASTIC_RUN_ID": "x"}, "resnet"),
    ({"DATAWAIT_JOB": " \t", "SLURM_JOB_ID": "7"}, "7"),
    ({"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "train resnet", "TORCHELASTIC_RUN_ID": "x"}, "train resnet-4711"),
    ({"SLURM_JOB_NAME": "interactive"}, None),  # of a login shell, without a job
    ({"TORCHELASTIC_RUN_ID": "bert"}, "bert"),
    ({"TORCHELASTIC_RUN_ID": "none"}, None),  # what torchrun says when nobody named the run
    ({"DATAWAIT_JOB": "ä" * 500}, "ä" * 128),
    ({"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "n" * 500}, "n" * 112 + "-4711"),
    ({"DATAWAIT_JOB": "a\udc80\n\"b"}, "a\udc80\n\"b"),
]  # fmt: skip


@pytest.mark.parametrize("env, name", NAMED)
def test_what_the_job_is_called(monkeypatch, env, name):
    for variable in ("DATAWAIT_JOB", "SLURM_JOB_ID", "SLURM_JOB_NAME", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)
    declared = stream.declare("main")["job"]
    assert declared == name and json.loads(json.dumps(declared)) == name
