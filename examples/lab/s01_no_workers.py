"""S01: no workers, storage latency.

W = 0, every sample sleeps 5 ms: L = 8 × 5 = 40 ms, C = 20 ms. step = L + C = 60 ms, wait share 40/60 = 0.67. Right:
too-few-workers; first fix 2 to 4 workers (step max(20, 40/W)). Wrong first: pin_memory, persistent_workers.
"""

import lab

if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=0).parse_args()
    samples = lab.Samples(length=100000, sleep=0.005)
    lab.Training(chosen, compute=0.020).run(lab.loader(samples, chosen.workers))
