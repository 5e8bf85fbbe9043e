"""F40: tokenising in collate.

Samples are texts of 120 words; collate_fn splits them, looks every word up and breaks unknown ones into pieces. W =
2, C = 8 ms. The script prints what a batch costs; step = cost/2 while that is above C. Right: cpu-transform, in
collate; first fix vectorise it or tokenise before training. Wrong first: more workers, prefetch_factor, storage.
"""

import functools
import random
import re
import time

import torch

import lab

WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=3 + n % 9)) for n in range(2000)]
VOCABULARY = {word: n for n, word in enumerate(WORDS[:1000])}
PIECES = {word[:k] for word in WORDS for k in range(1, 5)}
TARGET = 0.044  # CPU seconds of a batch


def pieces(word):
    """Greedy longest pieces, as WordPiece does."""
    while word:
        size = next((k for k in range(len(word), 0, -1) if word[:k] in PIECES), 1)
        yield word[:size]
        word = word[size:]


def tokenise(text):
    ids = []
    for word in re.findall(r"\w+", text.lower()):
        known = VOCABULARY.get(word)
        ids.extend([known] if known is not None else [hash(piece) % 30000 for piece in pieces(word)])
    return ids[:128]


def collate(times, texts):
    rows = []
    for text in texts:
        for _ in range(times):
            ids = tokenise(text)
        rows.append(torch.tensor(ids + [0] * (128 - len(ids)), dtype=torch.float32)[:16])
    return torch.stack(rows)


def stack(rows):
    return torch.stack(rows)[:, :16]


class Texts(lab.Samples):
    def __init__(self, length, tokenised):
        super().__init__(length)
        self.texts = [" ".join(random.Random(n).choices(WORDS, k=120)) for n in range(256)]
        self.rows = torch.zeros(256, 128) if tokenised else None

    def __getitem__(self, index):
        return self.texts[index % 256] if self.rows is None else self.rows[index % 256]


def repetitions(texts):
    """How often a text must be tokenised for a batch to cost the same on any machine."""
    tried = []
    for _ in range(5):
        begin = time.thread_time()
        collate(1, texts[: lab.BATCH])
        tried.append(time.thread_time() - begin)
    return max(1, round(TARGET / min(tried)))


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("vectorize-collate", "preprocess-once")).parse_args()
    samples = Texts(100000, tokenised=bool(chosen.repair))
    gather = stack if chosen.repair else functools.partial(collate, repetitions(samples.texts))
    lab.Training(chosen, compute=0.008).run(lab.loader(samples, chosen.workers, collate_fn=gather))
