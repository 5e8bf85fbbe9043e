"""Two ways to read the catalogue: as it grew (a photo and a feature record per product), and from shards."""

import array
import json
import os
import struct

import images

FEATURES = 64
SHARD_HEADER = struct.Struct("<II")  # samples, bytes per photo


class SmallObjects:
    """One product is two objects: a photo to decode and a JSON record to join. Every epoch fetches both again."""

    def __init__(self, store, products):
        self.store = store
        self.products = products

    def __len__(self):
        return self.products

    def __getitem__(self, index):
        photo = self.store.get("photos/%06d.%s" % (index, images.SUFFIX))
        record = json.loads(self.store.get("features/%06d.json" % index))
        _, _, pixels = images.decode(photo)
        return pixels, array.array("f", record["features"]).tobytes(), record["label"]


class Shards:
    """Products decoded and joined once, many to a file; a file is fetched once and then read from the local cache."""

    def __init__(self, store, products, per_shard, cache):
        self.store = store
        self.products = products
        self.per_shard = per_shard
        self.cache = cache

    def __len__(self):
        return self.products

    def __getitem__(self, index):
        shard, position = divmod(index, self.per_shard)
        with open(self._local(shard), "rb") as file:
            _, pixel_bytes = SHARD_HEADER.unpack(file.read(SHARD_HEADER.size))
            sample_bytes = pixel_bytes + 4 * FEATURES + 4
            file.seek(SHARD_HEADER.size + position * sample_bytes)
            sample = file.read(sample_bytes)
        (label,) = struct.unpack_from("<i", sample, pixel_bytes + 4 * FEATURES)
        return sample[:pixel_bytes], sample[pixel_bytes : pixel_bytes + 4 * FEATURES], label

    def _local(self, shard):
        path = os.path.join(self.cache, "shard-%05d.bin" % shard)
        if not os.path.exists(path):
            data = self.store.get("shards/%05d.bin" % shard)
            partial = "%s.%d" % (path, os.getpid())
            with open(partial, "wb") as file:
                file.write(data)
            os.replace(partial, path)  # several workers may fetch the same shard; each leaves a whole file
        return path


def pack_shard(samples):
    """Serialises decoded samples (pixels, features, label) as one shard."""
    pixel_bytes = len(samples[0][0])
    parts = [SHARD_HEADER.pack(len(samples), pixel_bytes)]
    for pixels, features, label in samples:
        parts.append(pixels + features + struct.pack("<i", label))
    return b"".join(parts)
