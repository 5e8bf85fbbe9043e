"""WebDataset: shards that the job writes itself, batched in the workers and batched anew in the training process.

Two batches of the loader make one of the training, so a step is two fetches.

    datawait record -- python3 train_webdataset.py
"""

import argparse
import os
import tempfile

import known
import torch
import webdataset

SHARDS = 4


def write_shards(folder, samples):
    """The data set as files; returns their names."""
    pattern = os.path.join(folder, "shard-%06d.tar")
    with webdataset.ShardWriter(pattern, maxcount=samples // SHARDS, verbose=0) as writer:
        for index in range(samples):
            writer.write({"__key__": "%08d" % index, "cls": index % 2})
    return os.path.join(folder, "shard-{000000..%06d}.tar" % (SHARDS - 1))


def decode(sample):
    return known.build(), int(sample["cls"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train(write_shards(folder, chosen.steps * 2 * known.BATCH))


def train(shards):
    dataset = webdataset.WebDataset(shards, shardshuffle=SHARDS).shuffle(16).map(decode).batched(known.BATCH)
    loader = webdataset.WebLoader(dataset, batch_size=None, num_workers=known.WORKERS)
    loader = loader.unbatched().shuffle(8).batched(2 * known.BATCH)

    model = torch.nn.Linear(known.FEATURES, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    compute, clock = known.Compute(), known.Clock()
    for features, labels in loader:
        clock.arrived()
        compute()
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        clock.done()


if __name__ == "__main__":
    main()
