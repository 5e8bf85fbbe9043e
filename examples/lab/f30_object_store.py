"""F30: objects over HTTP, one request a sample.

A server on loopback, a process of its own, answers every request after 10 ms, however many ask. 8 × 10 ms and a
little: L = 84 ms, W = 2, C = 12 ms. step 42, share 0.71. Right: storage-latency or too-few-workers; first fix a local
copy, shards (one request a batch) or more workers. Wrong first: the decoder, pin_memory, more GPUs.
"""

import http.client
import http.server
import multiprocessing
import time

import torch

import lab

LATENCY, SIZE = 0.010, 32 * 1024


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet, or the client's delayed acknowledgement adds 40 ms

    def do_GET(self):
        time.sleep(LATENCY)
        size = int(self.path.rsplit("/", 1)[-1])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(bytes(size))

    def log_message(self, *arguments):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads = True
    multiprocessing.Process(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Objects(lab.Samples):
    """Fetches each sample, or with `together` a whole batch at its first sample."""

    def __init__(self, length, port, repair):
        super().__init__(length)
        self.port, self.repair, self.connection, self.fetched = port, repair, None, 0

    def get(self, size):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", "/%d" % size)
        return self.connection.getresponse().read()

    def __getitem__(self, index):
        self.fetched += 1
        if self.repair == "shard-files" and self.fetched % lab.BATCH == 1:
            self.get(SIZE * lab.BATCH)
        elif self.repair is None:
            self.get(SIZE)
        return torch.zeros(16)


if __name__ == "__main__":
    chosen = lab.options(__doc__, workers=2, repairs=("nvme-cache", "shard-files")).parse_args()
    lab.Training(chosen, compute=0.012).run(lab.loader(Objects(100000, serve(), chosen.repair), chosen.workers))
