"""Workers read over HTTP: half a megabyte a sample, two samples a batch. The counters of read() do not see it.

What a report says a batch reads is either near 1 000 000 bytes or not known; never the few bytes that came another way.
"""

import http.client
import http.server
import multiprocessing
import time

import torch
from torch.utils.data import DataLoader, Dataset

from own import Own, arguments

BODY = bytes(500_000)


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *arguments):
        pass


def serve(port):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    port.send(server.server_address[1])
    server.serve_forever()


class Objects(Dataset):
    def __init__(self, port):
        self.port, self.connection = port, None

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", "/%d" % index)
        got = len(self.connection.getresponse().read())
        time.sleep(0.008)
        return torch.tensor(got)


def main():
    chosen = arguments(__doc__, workers=1, seconds=4.0)
    receive, send = multiprocessing.Pipe(duplex=False)
    store = multiprocessing.Process(target=serve, args=(send,), daemon=True)
    store.start()
    own = Own(chosen.truth)
    got, batches = 0, 0
    began = own.clock()
    iterator = iter(DataLoader(Objects(receive.recv()), batch_size=2, num_workers=chosen.workers))
    while own.clock() - began < chosen.seconds:
        got += int(own.next(iterator).sum())
        batches += 1
        own.step()
    own.write(bytes=got / batches)
    store.terminate()


if __name__ == "__main__":
    main()
