"""S03: a shared link.

Every sample takes 4 ms of one link that all workers share (a lock held for the time): 8 × 4 = 32 ms a batch for any
W, C = 12 ms. step 32, share 0.625 for every W. Right: storage-bandwidth; first fix a local copy, or fewer bytes.
Wrong first: more workers, prefetch_factor.
"""

import multiprocessing

import lab

if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=4, repairs=("nvme-cache", "parallel-filesystem")).parse_args()
    lock = None if chosen.repair == "parallel-filesystem" else multiprocessing.Lock()
    samples = lab.Samples(length=100000, sleep=0 if chosen.repair == "nvme-cache" else 0.004, lock=lock)
    lab.Training(chosen, compute=0.012).run(lab.loader(samples, chosen.workers))
