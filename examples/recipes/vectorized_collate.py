"""Do it once for a batch: look up, pad and pack whole arrays, where a loop over samples made Python objects.

Texts lie in one array of bytes and one of where each begins. A list of strings is copied into every worker bit by bit:
looking at an object changes its reference count, and so the memory page it lies on; memory grows all epoch long. Tokens
of a batch are one table look-up and one assignment. Give a tokenizer of your own the list of a batch's texts, not one
text, and in collate_fn, not in the training loop. pack() hands over one tensor for each type of number: each tensor
costs a file descriptor and a shared mapping on its way to the training process.

    python3 vectorized_collate.py
    python3 vectorized_collate.py --texts 100000 --batch 256
"""

import math
import time

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

# The token of each byte: capitals are those of small letters, 0 is padding.
TABLE = np.array([ord(chr(byte).lower()) + 1 if byte < 128 else byte + 1 for byte in range(256)])


class Texts(Dataset):
    """Texts in two arrays instead of a list."""

    def __init__(self, texts):
        encoded = [text.encode() for text in texts]
        self.starts = np.cumsum([0, *map(len, encoded)])
        self.bytes = np.frombuffer(b"".join(encoded), np.uint8)

    def __len__(self):
        return len(self.starts) - 1

    def __getitem__(self, index):
        return self.bytes[self.starts[index] : self.starts[index + 1]], index


def one_by_one(samples):
    """As it was."""
    rows = [torch.tensor([TABLE[byte] for byte in text], dtype=torch.int64) for text, _ in samples]
    tokens, lengths = pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows])
    return {"tokens": tokens, "lengths": lengths, "labels": torch.tensor([label for _, label in samples])}


def at_once(samples):
    texts, labels = zip(*samples)
    lengths = np.fromiter(map(len, texts), np.int64)
    tokens = np.zeros((len(texts), lengths.max()), np.int64)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = TABLE[np.concatenate(texts)]
    arrays = {"tokens": tokens, "lengths": lengths, "labels": np.array(labels)}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def pack(batch):
    """The last thing in collate_fn: all tensors of a type as one, and what they were."""
    parts = {}
    for tensor in batch.values():
        parts.setdefault(tensor.dtype, []).append(tensor.flatten())
    shapes = [(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in batch.items()]
    return shapes, {dtype: torch.cat(tensors) for dtype, tensors in parts.items()}


def unpack(packed):
    """The first thing in the training loop, before or after the copy to the device: views, which cost nothing."""
    shapes, flat = packed
    batch, begin = {}, dict.fromkeys(flat, 0)
    for name, dtype, shape in shapes:
        end = begin[dtype] + math.prod(shape)
        batch[name], begin[dtype] = flat[dtype][begin[dtype] : end].view(*shape), end
    return batch


def packed_at_once(samples):
    return pack(at_once(samples))


def main():
    import proofs
    from proofs.vectorized_collate import make_up

    chosen = proofs.options(__doc__, texts=512, batch=64, workers=0)
    texts = Texts(make_up(chosen.texts))
    for name, collate in ("one by one", one_by_one), ("at once", at_once):
        begin = time.thread_time()
        for first in range(0, len(texts), chosen.batch):
            collate([texts[index] for index in range(first, min(first + chosen.batch, len(texts)))])
        print("%s: %.1f us of CPU a sample" % (name, 1e6 * (time.thread_time() - begin) / len(texts)))
    loader = DataLoader(texts, chosen.batch, num_workers=chosen.workers, collate_fn=packed_at_once)
    longest = max(unpack(packed)["tokens"].shape[1] for packed in loader)
    print("%d batches, the longest text has %d tokens" % (len(loader), longest))


if __name__ == "__main__":
    main()
