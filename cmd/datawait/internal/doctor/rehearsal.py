"""A training job of some seconds that needs nothing: PyTorch's DataLoader with a worker where there is PyTorch."""

import importlib.util
import os
import sys
import time

seconds = float(sys.argv[1])


class Items:
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(0.01)
        return index


if importlib.util.find_spec("torch"):
    from torch.utils.data import DataLoader

    batches = DataLoader(Items(), batch_size=2, num_workers=1)
else:
    import datawait

    batches = datawait.watch(map(Items().__getitem__, range(1 << 20)), workers=0)
device = None
if os.environ.get("DATAWAIT_GPU") == "emulated":
    from datawait import emulated

    device = emulated.Gpu()
until = time.monotonic() + seconds
for batch in batches:
    time.sleep(0.005)
    if device:
        device.launch(0.005, sm=0.5)
    if time.monotonic() > until:
        break
