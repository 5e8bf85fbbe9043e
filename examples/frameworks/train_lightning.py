"""Lightning: two epochs, each with a validation loop and a checkpoint of the best model so far.

    datawait record -- python3 train_lightning.py
    datawait diagnose --gpu emulated -- python3 train_lightning.py --batches 100000
"""

import argparse
import tempfile

import known
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(known.FEATURES, 2)
        self.compute = known.Compute()

    def training_step(self, batch, index):
        self.compute()
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.log("val_loss", self.loss(batch))

    def loss(self, batch):
        features, labels = batch
        return torch.nn.functional.cross_entropy(self.layer(features), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class OwnClock(lightning.Callback):
    def __init__(self):
        self.clock = known.Clock()

    def on_train_batch_start(self, *_):
        self.clock.arrived()

    def on_train_batch_end(self, *_):
        self.clock.done()

    def on_train_epoch_end(self, *_):
        self.clock.away()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=100, help="per epoch")
    chosen = parser.parse_args()
    training = DataLoader(known.Samples(chosen.batches * known.BATCH), known.BATCH, num_workers=known.WORKERS)
    validation = DataLoader(known.quick(16), known.BATCH)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ModelCheckpoint(dirpath=folder, monitor="val_loss")
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=chosen.epochs,
            callbacks=[checkpoint, OwnClock()],
            logger=False,
            enable_progress_bar=False,
        )
        trainer.fit(Classifier(), training, validation)


if __name__ == "__main__":
    main()
