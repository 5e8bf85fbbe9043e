"""What the check asks of a GPU: work of a known kind and length, on a real one or on datawait's emulated one."""

import contextlib
import time


def device(name):
    return {"cuda": Cuda, "emulated": Emulated}[name]()


class Cuda:
    """A GPU through PyTorch. Kernels that spin for so many cycles are calibrated against the device's own clock."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.cuda.init()
        properties = torch.cuda.get_device_properties(0)
        self.name, self.multiprocessors = properties.name, properties.multi_processor_count
        self.cycles_per_second = self._calibrate()
        self.parameter = torch.nn.Parameter(torch.zeros(8, device="cuda"))
        self.optimizer = torch.optim.SGD([self.parameter], lr=0.1)
        self.parameter.grad = torch.zeros_like(self.parameter)
        self.stream = None

    def _calibrate(self):
        cuda = self.torch.cuda
        cycles = 20_000_000
        self._spin(cycles)  # the first launch loads the kernel
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        begin.record()
        self._spin(cycles)
        end.record()
        end.synchronize()
        return cycles / (begin.elapsed_time(end) / 1e3)

    def _spin(self, cycles):
        self.torch.cuda._sleep(int(cycles))  # one block of one thread (aten/src/ATen/cuda/Sleep.cu)

    def synchronize(self):
        self.torch.cuda.synchronize()

    def one_multiprocessor(self, seconds):
        self._until(seconds, lambda: self._spin(0.02 * self.cycles_per_second))

    def full(self, seconds):
        a = self.torch.randn(8192, 8192, device="cuda", dtype=self.torch.half)
        b = self.torch.empty_like(a)
        self._until(seconds, lambda: self.torch.mm(a, a, out=b))

    def copies(self, seconds):
        host = self.torch.empty(256 << 20, dtype=self.torch.uint8, pin_memory=True)
        there = self.torch.empty(256 << 20, dtype=self.torch.uint8, device="cuda")
        self._until(seconds, lambda: there.copy_(host, non_blocking=True))

    def _until(self, seconds, launch):
        """Keeps a few launches queued for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(4):
                launch()
            self.synchronize()

    def step(self, seconds):
        """The work of one training step: a kernel of known length, then the optimizer."""
        self._spin(seconds * self.cycles_per_second)
        self.optimizer.step()

    def beside(self):
        """A stream that is not the default one, as a context."""
        if self.stream is None:
            self.stream = self.torch.cuda.Stream()
        return self.torch.cuda.stream(self.stream)

    def graph(self, seconds):
        """A step as a CUDA graph, captured after a warm-up on a side stream, as PyTorch's notes on them say."""
        with self.beside():
            for _ in range(3):
                self.step(seconds)
        self.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self._spin(seconds * self.cycles_per_second)
        return graph.replay

    def small_step(self):
        """Some 200 µs of real work."""
        if not hasattr(self, "small"):
            self.small = self.torch.randn(2048, 2048, device="cuda", dtype=self.torch.half)
        self.torch.mm(self.small, self.small)
        self.optimizer.step()


class Emulated:
    """datawait's emulated device: the check checks itself."""

    name, multiprocessors = "emulated", 108

    def __init__(self):
        from datawait import emulated

        self.gpu = emulated.Gpu()

    def synchronize(self):
        self.gpu.synchronize()

    def one_multiprocessor(self, seconds):
        self.gpu.launch(seconds, sm=1 / self.multiprocessors)
        self.gpu.synchronize()

    def full(self, seconds):
        self.gpu.launch(seconds, sm=0.97)
        self.gpu.synchronize()

    def copies(self, seconds):
        self.gpu.copy(seconds)

    def step(self, seconds):
        self.gpu.launch(seconds, sm=0.5)

    beside = staticmethod(contextlib.nullcontext)
