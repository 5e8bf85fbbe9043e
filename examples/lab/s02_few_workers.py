"""S02: too few workers, and knowing when to stop.

Every sample sleeps 5 ms: L = 40 ms, C = 15 ms. W = 1: step 40, share 0.625. W = 2: 20, 0.25. W = 4: 15, the floor.
Right: the smallest W with L/W ≤ C, which is 3; at 4 no fix to the data; at 16 no gain and a longer epoch start.
"""

import lab

if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=1).parse_args()
    samples = lab.Samples(length=100000, sleep=0.005)
    lab.Training(chosen, compute=0.015).run(lab.loader(samples, chosen.workers))
