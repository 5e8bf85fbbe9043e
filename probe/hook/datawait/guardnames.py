"""What the save-guard concludes from a file's name: little, and only where its age says nothing.

A file that is written for the first time has no age. Whether it is a checkpoint, or a log and a cache that a run may
go on writing, only its name tells.
"""

from __future__ import annotations

import os
import re

# A file so called is taken for a model's state, whoever writes it.
MODEL = (
    ".pt", ".pth", ".pth.tar", ".ckpt", ".safetensors", ".distcp", ".bin", ".pkl", ".pickle", ".joblib", ".npy",
    ".npz", ".h5", ".hdf5", ".onnx", ".gguf", ".msgpack", ".pdparams",
)  # fmt: skip
# A folder so called is about to hold one. A word before the number is needed: 2024-05-01 is a day of logs.
MODEL_FOLDER = re.compile(r"^(checkpoint|ckpt|epoch|step|global_?step|iter|iteration)[-_=]?\d+", re.IGNORECASE)
# What a run writes anew or moves about while it trains, and can do without: logs, also rotated ones, and locks.
LOG = re.compile(r"\.(log|out|err|csv|tsv|jsonl|lock|lck|pid)(\.[\d][\w.-]*)?$|^events\.out\.tfevents\.", re.IGNORECASE)
LOCK = re.compile(r"\.(lock|lck|pid)$", re.IGNORECASE)


def model(path: str) -> bool:
    return os.path.basename(path).lower().endswith(MODEL)


def model_folder(path: str) -> bool:
    return MODEL_FOLDER.match(os.path.basename(path.rstrip(os.sep))) is not None


def log(path: str) -> bool:
    return LOG.search(os.path.basename(path)) is not None


def lock(path: str) -> bool:
    return LOCK.search(os.path.basename(path)) is not None
