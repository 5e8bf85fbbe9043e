"""S26: compute-bound, the control.

Every sample sleeps 1 ms: L = 8 ms, W = 2, C = 40 ms: the wait is the hand-off floor. Right: compute-bound, no fix to
the data helps more than 3 %. With --marginal: W = 1, L = 105 ms, C = 100 ms, share 0.048: small, 5 %, never critical.
"""

import lab

if __name__ == "__main__":
    parser = lab.options(__doc__, workers=None)
    parser.add_argument("--marginal", action="store_true")
    chosen = parser.parse_args()
    workers = chosen.workers if chosen.workers is not None else (1 if chosen.marginal else 2)
    samples = lab.Samples(length=100000, sleep=0.105 / lab.BATCH if chosen.marginal else 0.001)
    lab.Training(chosen, compute=0.100 if chosen.marginal else 0.040).run(lab.loader(samples, workers))
