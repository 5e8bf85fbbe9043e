"""S27: stalls between steps.

(a) A checkpoint of 0.6 s every 25 steps, C = 20 ms: 0.6 of 1.1 s. (b) With --validation: after every 25 steps a
validation of 10 batches of 45 ms, whose loader has no workers: 0.45 of 0.95 s. Training itself waits for nothing.
Right: periodic-stall. First fix (a) save in the background, (b) validation with workers or less often. Wrong first:
anything about the training loader.
"""

import io
import threading
import time

import torch

import lab

EVERY = 25


class Checkpoints:
    """Saves every 25 steps: 0.6 s on a slow store."""

    def __init__(self, training, background):
        self.training, self.background = training, background

    def after_step(self):
        if self.training.done % EVERY == 0:
            copy = {name: value.clone() for name, value in self.training.layer.state_dict().items()}
            if self.background:
                threading.Thread(target=self.save, args=(copy,)).start()
            else:
                self.save(copy)

    def save(self, state):
        torch.save(state, io.BytesIO())
        time.sleep(0.6)


def validate(training, batches):
    with torch.no_grad():
        for batch in batches:
            training.gpu.launch(0.005, sm=0.9)
            training.layer(batch)
            training.gpu.synchronize()


if __name__ == "__main__":
    parser = lab.options(__doc__, workers=2, repairs=("async-checkpoint", "validation-less"))
    parser.add_argument("--validation", action="store_true")
    chosen = parser.parse_args()
    training = lab.Training(chosen, compute=0.020)
    if chosen.validation:
        batches = lab.loader(lab.Samples(length=EVERY * lab.BATCH, sleep=0.001), chosen.workers)
        held_out = lab.loader(lab.Samples(length=10 * lab.BATCH, sleep=0.005), 4 if chosen.repair else 0)
        training.run(batches, after_epoch=lambda: validate(training, held_out))
    else:
        saves = Checkpoints(training, background=bool(chosen.repair))
        training.run(lab.loader(lab.Samples(length=100000, sleep=0.001), chosen.workers), after_step=saves.after_step)
