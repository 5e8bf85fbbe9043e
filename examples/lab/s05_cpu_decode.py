"""S05: decoding keeps the cores full (two usable cores).

Every sample burns 6 ms of CPU: B = 48 ms, C = 10 ms, K = 2. W = 1: step 48, share 0.79. W ≥ 2: 24, share 0.58. Right
at W = 1: a second worker. Right at W ≥ 2: cpu-transform; cheaper decoding, preprocessing once or more cores. Wrong
first at W ≥ 2: more workers, prefetch_factor, storage.
"""

import lab

if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("cheaper-decode", "preprocess-once")).parse_args()
    cost = {None: 0.006, "cheaper-decode": 0.004, "preprocess-once": 0}[chosen.repair]
    samples = lab.Samples(length=100000, burn_chunks=lab.chunks_for(cost) if cost else 0)
    lab.Training(chosen, compute=0.010).run(lab.loader(samples, chosen.workers))
