"""Which command lines change files that are to be protected, or send files away."""

from __future__ import annotations

import os

import pytest

from datawait.commands import harmful


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Everything called old… is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    return lambda path: os.path.basename(path.rstrip("/")).startswith("old")


@pytest.mark.parametrize(
    "line",
    [
        "rm old.pt", "rm -rf old/", "rm *.pt", "rm $LAST", "/bin/rm -f old.pt", "cd x; rm old.pt", "true && rm old.pt",
        "(rm old.pt)", "mv old.pt new.pt", "mv new.pt old.pt", "cp new.pt old.pt", "cp -r old.pt folder/",
        "cat new > old.pt", "echo x>old.pt", "truncate -s 0 old.pt", "gzip old.pt", "tee old.pt", "dd if=a of=old.pt",
        "sed -i s/a/b/ old.txt", "find . -name '*.pt' -delete", "find . -exec rm {} ;", "sudo rm old.pt",
        "env A=1 nice -n 5 rm old.pt", "timeout 5 rm old.pt", "ls | xargs rm old.pt", "bash -c 'rm old.pt'",
        "bash -lc 'cd x && rm old.pt'", "rsync -a folder host:/backup", "scp new.pt host:", "aws s3 cp new.pt s3://b/k",
        "aws s3 rm s3://b/k", "aws s3 sync . s3://b", "aws s3api put-object --key k", "gsutil -m cp -r . gs://b",
        "gsutil rm gs://b/k", "gcloud storage cp a gs://b", "aws s3 cp s3://b/k old.pt", "s5cmd cp a s3://b/k",
        "hdfs dfs -put a /b", "git push", "git commit -am x", "hf upload me/model .", "dvc push",
        "wandb artifact put a", "ln -sf new old",
    ],
)  # fmt: skip
def test_held(old, line):
    assert harmful(line, True, None, old)


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-smi", "ls old.pt", "cat old.pt", "rm new.tmp", "mv new.a new.b", "cp old.pt new.pt", "cp new.pt folder",
        "cat old.pt >> log", "cat < old.pt", "echo hi 2>&1", "gcc -o new.so new.c", "git rev-parse HEAD", "git diff",
        "aws s3 cp s3://b/k new.tar", "aws s3 cp s3://b/k -", "aws s3 ls", "gsutil cat gs://b/k",
        "gsutil cp gs://b/k -", "rsync host:/data folder", "scp host:a new", "wandb login", "sed s/a/b/ old.txt",
        "find . -name x",
        "bash script.sh", "python -m train", "", "env", "tar xf old.tar", "hf download me/model",
    ],
)  # fmt: skip
def test_let_through(old, line):
    assert not harmful(line, True, None, old)


def test_words_instead_of_a_line(old):
    assert harmful(["rm", "old.pt"], False, None, old)
    assert harmful(("rm", b"old.pt"), False, None, old)
    assert not harmful(["echo", "rm", "old.pt"], False, None, old)
    assert not harmful("rm old.pt", False, None, old)  # the name of a program
    assert harmful(["rm old.pt", "ignored"], True, None, old)


def test_a_command_runs_in_its_folder(old, tmp_path):
    asked = []
    harmful(["rm", "a.pt"], False, str(tmp_path / "folder"), lambda path: asked.append(path) or False)
    assert asked == [str(tmp_path / "folder" / "a.pt")]
