"""Whether a command line changes or deletes files that are to be protected, or sends files away.

A child that is no Python cannot be stopped later, so it is judged by its words before it is started. Only tools that
people call from training scripts are known, and where a word cannot be resolved (a pattern, a variable) the worst is
assumed. Whatever else a program does to files is out of sight.
"""

from __future__ import annotations

import os
import shlex
from typing import Any, Callable, List, Optional, Sequence

Old = Callable[[str], bool]

TAKES_AWAY = {"rm", "rmdir", "unlink", "shred", "truncate", "mv", "gzip", "bzip2", "xz", "zstd", "pigz", "tee"}
WRITES_LAST = {"cp", "ln", "install", "rsync", "scp"}
CLOUD = {"aws", "gsutil", "gcloud", "azcopy", "s5cmd", "rclone", "mc", "hdfs", "hadoop"}
CLOUD_COPIES = {"cp", "copy", "sync", "rsync", "-cp", "-put", "-copyFromLocal"}
CLOUD_CHANGES = {"rm", "mv", "move", "delete", "purge", "remove", "-rm", "-mv", "-put", "-copyFromLocal"}
REGISTRY = {"hf", "huggingface-cli", "wandb", "dvc", "mlflow", "git"}
REGISTRY_CHANGES = {
    "upload", "upload-large-folder", "push", "sync", "artifact", "artifacts", "commit", "checkout", "reset", "clean",
    "rm", "mv", "restore", "stash", "gc",
}  # fmt: skip
SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
# Run what follows them.
WRAPPERS = {"sudo", "env", "nice", "ionice", "timeout", "nohup", "stdbuf", "time", "exec", "xargs", "command", "setsid"}
OPERATORS = set(";&|()\n")
UNRESOLVED = set("*?[$`~")


def harmful(args: Any, shell: bool, cwd: Any, old: Old) -> bool:
    """What subprocess.Popen is asked to run. ``old`` says of a path whether it, or anything below it, is protected."""
    folder = os.fsdecode(cwd) if cwd is not None else ""
    if isinstance(args, (str, bytes, os.PathLike)):
        text = os.fsdecode(args)
        return _line(text, folder, old) if shell else _words([text], folder, old)
    words = [os.fsdecode(word) for word in args]
    return _line(words[0], folder, old) if shell else _words(words, folder, old)


def _line(text: str, cwd: str, old: Old) -> bool:
    """A line for a shell: each command of it, and what it redirects to."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace_split = True
    words: List[str] = []
    target = False
    for token in lexer:
        if target:
            target = False
            if _gone([token], cwd, old):
                return True
        elif set(token) <= OPERATORS:
            if _words(words, cwd, old):
                return True
            words = []
        elif set(token) <= set("<>&|"):
            target = token.startswith(">") and not token.startswith(">>")
        else:
            words.append(token)
    return _words(words, cwd, old)


def _words(words: Sequence[str], cwd: str, old: Old) -> bool:
    words = _unwrapped(words)
    if not words:
        return False
    tool, rest = os.path.basename(words[0]), words[1:]
    operands = [word for word in rest if not word.startswith("-")]
    if tool in SHELLS:
        line = _after(rest, "-c")
        return line is not None and _line(line, cwd, old)
    if tool in TAKES_AWAY:
        return _gone(operands, cwd, old)
    if tool in WRITES_LAST:
        return len(operands) > 1 and (_remote(operands[-1]) or _replaced(operands, cwd, old))
    if tool in CLOUD:
        return _cloud(rest, operands, cwd, old)
    if tool in REGISTRY:
        return any(word in REGISTRY_CHANGES for word in operands[:2])
    if tool == "dd":
        return _gone([word[3:] for word in rest if word.startswith("of=")], cwd, old)
    if tool == "sed":
        return any(word.startswith(("-i", "--in-place")) for word in rest) and _gone(operands, cwd, old)
    return tool == "find" and any(word in ("-delete", "-exec", "-execdir") for word in rest)


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Without what stands before the command proper: assignments, wrappers and their options."""
    wrapped = False
    for at, word in enumerate(words):
        if os.path.basename(word) in WRAPPERS:
            wrapped = True
        elif not ("=" in word or (wrapped and (word.startswith("-") or word[:1].isdigit()))):
            return words[at:]
    return ()


def _after(words: Sequence[str], option: str) -> Optional[str]:
    """The word after an option, which may stand among others in one word: ``-lc``."""
    for at, word in enumerate(words[:-1]):
        if word.startswith("-") and not word.startswith("--") and word.endswith(option[1:]):
            return words[at + 1]
    return None


def _cloud(rest: Sequence[str], operands: Sequence[str], cwd: str, old: Old) -> bool:
    """Downloads are let through where they overwrite nothing; "-" is standard output."""
    if any(word in CLOUD_CHANGES or word.startswith(("put-", "delete-", "upload-", "copy-")) for word in rest):
        return True
    if not any(word in CLOUD_COPIES for word in rest) or operands[-1:] == ["-"] or rest[-1:] == ["-"]:
        return False
    return bool(operands) and (_remote(operands[-1]) or _replaced(operands, cwd, old))


def _gone(paths: Sequence[str], cwd: str, old: Old) -> bool:
    return any(UNRESOLVED & set(path) or old(os.path.join(cwd, path)) for path in paths)


def _replaced(operands: Sequence[str], cwd: str, old: Old) -> bool:
    """Whether the last operand, or what lands in it where it is a folder, is protected."""
    last = operands[-1]
    if UNRESOLVED & set(last):
        return True
    target = os.path.join(cwd, last)
    if not os.path.isdir(target):
        return old(target)
    return any(
        UNRESOLVED & set(source) or old(os.path.join(target, os.path.basename(source.rstrip("/"))))
        for source in operands[:-1]
    )


def _remote(path: str) -> bool:
    """``s3://bucket/key`` or ``host:path``."""
    return ":" in path.split("/", 1)[0] and not path.startswith(("/", "."))
