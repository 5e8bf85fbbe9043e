"""A loop that skips bad batches, and one that looks at its iterator: both see what they would see without an observer.

Of 20 batches one raises. A loop that catches this and goes on gets the other 19; where iter(loader) became a
generator it gets none after the bad one, silently.
"""

import types

import torch
from torch.utils.data import DataLoader, Dataset

from own import Own, arguments


class Samples(Dataset):
    def __init__(self):
        self.asked = 0

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.asked += 1
        if index == 5:
            raise ValueError("a bad sample")
        return torch.tensor(index)


chosen = arguments(__doc__)
own = Own(chosen.truth)
seen = {}
for workers in (0, 2):
    samples = Samples()
    loader = DataLoader(samples, num_workers=workers)
    iterator = iter(loader)
    asked = samples.asked
    good, bad = [], 0
    while True:
        try:
            good.append(int(own.next(iterator)))
        except StopIteration:
            break
        except ValueError:
            bad += 1
    seen[workers] = {
        "batches": good,
        "bad": bad,
        "class": type(iterator).__qualname__,
        "generator": isinstance(iterator, types.GeneratorType),
        "asked by iter()": asked,
        "length": len(loader),
        "attributes of the loader": sorted(name for name in vars(loader) if "datawait" in name),
    }
print(seen)
own.write(**{"%d workers" % workers: len(seen[workers]["batches"]) for workers in seen})
