"""Two loaders at once: labelled and unlabelled samples in every step.

The labelled loader takes 5 ms a sample (L = 40 ms), the unlabelled one 0.5 ms (L = 4 ms), one worker each; a step
takes a batch of both. C = 15 ms: step 40, share 0.62, all of it for the labelled one. Right: too-few-workers for that
loader; first fix 3 workers for it. Wrong first: anything about the other one.
"""

import lab


class Pairs:
    """Two loaders side by side."""

    def __init__(self, labelled, unlabelled):
        self.loaders = labelled, unlabelled

    def __iter__(self):
        for one, other in zip(*self.loaders):
            yield one + other


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=1).parse_args()
    labelled = lab.loader(lab.Samples(length=100000, sleep=0.005), chosen.workers)
    unlabelled = lab.loader(lab.Samples(length=100000, sleep=0.0005), 1)
    lab.Training(chosen, compute=0.015).run(Pairs(labelled, unlabelled))
