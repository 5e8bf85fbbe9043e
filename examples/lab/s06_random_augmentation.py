"""S06: random augmentation; which cache helps?

Every sample sleeps 1 ms (storage) and burns 6 ms (augmentation): L = 56 ms, W = 2, C = 12 ms. step 28, share 0.57.
The raw files in memory: 24. Finished batches in memory: 12. Right: cpu-transform. Wrong first: caching the raw files,
a faster disk.
"""

import lab

if __name__ == "__main__":
    repairs = ("augment-on-gpu", "preprocess-once", "cheaper-decode", "nvme-cache")
    chosen = lab.options(__doc__, workers=2, repairs=repairs).parse_args()
    cost = {"augment-on-gpu": 0, "preprocess-once": 0, "cheaper-decode": 0.004}.get(chosen.repair, 0.006)
    sleep = 0 if chosen.repair == "nvme-cache" else 0.001
    samples = lab.Samples(length=100000, sleep=sleep, burn_chunks=lab.chunks_for(cost) if cost else 0)
    compute = 0.012 * (1.12 if chosen.repair == "augment-on-gpu" else 1)
    lab.Training(chosen, compute).run(lab.loader(samples, chosen.workers))
