"""A small multi-process loader for machines without PyTorch. It queues as torch.utils.data.DataLoader does: batches are
dealt to the workers in turn, `prefetch` ahead per worker, and delivered in order."""

import multiprocessing
import queue

import datawait


class Loader:
    """Iterates over batches of dataset[i]; one `for` over it is one epoch. Workers live as long as the loader."""

    def __init__(self, dataset, sampler, batch_size, workers, prefetch, collate):
        self.dataset, self.sampler, self.batch_size = dataset, sampler, batch_size
        self.workers, self.prefetch, self.collate = workers, prefetch, collate
        context = multiprocessing.get_context("fork")
        self._inboxes = [context.SimpleQueue() for _ in range(workers)]
        self._results = context.Queue()
        self._arrived = {}
        self._outstanding = 0
        self._sent = -1
        self._processes = [
            context.Process(target=self._work, args=(number, inbox), daemon=True)
            for number, inbox in enumerate(self._inboxes)
        ]
        for process in self._processes:
            process.start()

    def __len__(self):
        return len(self.dataset) // self.batch_size

    def ready(self):
        """Batches built and waiting to be taken."""
        return len(self._arrived) + self._results.qsize()

    def sent(self):
        """Index of the batch that a worker was asked for last."""
        return self._sent

    def close(self):
        for inbox in self._inboxes:
            inbox.put(None)
        for process in self._processes:
            process.join(timeout=5)

    def __iter__(self):
        order = list(self.sampler())
        batches = [order[i : i + self.batch_size] for i in range(0, len(self) * self.batch_size, self.batch_size)]
        self._drain()
        ahead = self.workers * self.prefetch
        self._ask(batches[:ahead], 0)
        for number in range(len(batches)):
            batch = self._take(number)
            self._ask(batches[number + ahead : number + ahead + 1], number + ahead)  # one more for each one taken
            yield batch

    def _ask(self, batches, first):
        for number, indices in enumerate(batches, first):
            self._inboxes[number % self.workers].put((number, indices))
            self._outstanding += 1
            self._sent = number

    def _take(self, number):
        while number not in self._arrived:
            arrived, batch = self._results.get()
            self._arrived[arrived] = batch
        self._outstanding -= 1
        batch = self._arrived.pop(number)
        if isinstance(batch, Exception):
            raise batch
        return batch

    def _drain(self):
        """An epoch that was left early leaves batches behind; they are not this epoch's."""
        while self._outstanding > len(self._arrived):
            try:
                arrived, batch = self._results.get(timeout=30)
            except queue.Empty:
                break
            self._arrived[arrived] = batch
        self._arrived.clear()
        self._outstanding = 0

    def _work(self, number, inbox):
        while True:
            task = inbox.get()
            if task is None:
                return
            index, indices = task
            try:
                with datawait.building(index, samples=len(indices)):
                    batch = self.collate([self.dataset[i] for i in indices])
            except Exception as error:
                batch = error
            self._results.put((index, batch))
