"""S29: a device that is held and not used, and one whose loader hangs; the two must differ.

The process takes the device and makes no step. Right: idle-allocated. With --blocked: after 80 steps every read takes
5 s. Right: a data stall, never idle-allocated.
"""

import time

import torch

import lab


class Hanging(lab.Samples):
    """Reads fast, and then no more."""

    def __getitem__(self, index):
        time.sleep(0.001 if index < 80 * lab.BATCH else 5)
        return torch.zeros(16)


if __name__ == "__main__":
    parser = lab.options(__doc__, workers=2)
    parser.add_argument("--blocked", action="store_true")
    chosen = parser.parse_args()
    training = lab.Training(chosen, compute=0.020)
    if chosen.blocked:
        training.run(lab.loader(Hanging(100000), chosen.workers))
    else:
        training.gpu.launch(0.010)
        time.sleep(30)
