"""Preprocesses the catalogue once: decodes every photo, joins its features, packs shards and puts them into the store.

    python3 prepare.py --store http://127.0.0.1:9000 --products 1200 --per-shard 60
"""

import argparse
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

from datasets import SmallObjects, pack_shard
from store import Store

CONCURRENT_GETS = 12


def build(job):
    url, products, per_shard, shard = job
    indices = range(shard * per_shard, min(products, (shard + 1) * per_shard))

    def read(index):
        # One connection per thread: http.client is not made for sharing.
        return [SmallObjects(stores[index % CONCURRENT_GETS], products)[i] for i in indices[index::CONCURRENT_GETS]]

    stores = [Store(url) for _ in range(CONCURRENT_GETS)]
    with ThreadPoolExecutor(CONCURRENT_GETS) as pool:
        columns = list(pool.map(read, range(CONCURRENT_GETS)))
    samples = [columns[n % CONCURRENT_GETS][n // CONCURRENT_GETS] for n in range(len(indices))]
    Store(url).put("shards/%05d.bin" % shard, pack_shard(samples))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, metavar="URL")
    parser.add_argument("--products", type=int, default=1200)
    parser.add_argument("--per-shard", type=int, default=60)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    shards = -(-options.products // options.per_shard)
    jobs = [(options.store, options.products, options.per_shard, shard) for shard in range(shards)]
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        pool.map(build, jobs, chunksize=1)
    print("prepared %d products in %d shards" % (options.products, shards))


if __name__ == "__main__":
    main()
