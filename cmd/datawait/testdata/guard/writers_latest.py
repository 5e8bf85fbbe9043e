"""Training as frameworks do it, with the newest PyTorch, saving and rotating every few steps; the framework is the
first argument.
"""

import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset
from witness import Witness, tell

EVERY = 5  # steps
torch.set_num_threads(1)


class Data(Dataset):
    def __len__(self):
        return 4 * 10**6

    def __getitem__(self, index):
        return {"x": torch.full((8,), float(index % 7)), "labels": torch.zeros(8)}


def loop(save, saver=True):
    """A loop by hand. A rank that does not save only trains."""
    model = torch.nn.Linear(8, 8)
    if torch.distributed.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    witness = Witness() if saver else None
    for step, batch in enumerate(DataLoader(Data(), batch_size=4), 1):
        model(batch["x"]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if saver and step % EVERY == 0:
            witness.save(step, lambda step: save(step, model))


def safetensors():
    from safetensors.torch import save_file

    loop(lambda step, model: save_file(model.state_dict(), "weights"))  # a name that says nothing


def distributed():
    import torch.distributed.checkpoint as checkpoint

    loop(lambda step, model: checkpoint.save(model.state_dict(), checkpoint_id="state", no_dist=True))


def distributed_async():
    """Staged in this thread, written by another; the save before is waited for."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as checkpoint

    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    written = []

    def save(step, model):
        state = {name: tensor for name, tensor in model.module.state_dict().items()}
        written.append(checkpoint.async_save(state, checkpoint_id="state"))
        written[-1].result()

    loop(save)


def ddp():
    """Two ranks under torchrun: one saves while the other goes on into the next collective."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    loop(lambda step, model: torch.save(model.module.state_dict(), "model"), saver=dist.get_rank() == 0)


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def training_step(self, batch, _):
            return self.layer(batch["x"]).sum()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-4)

    class Checkpoint(lightning.pytorch.callbacks.ModelCheckpoint):
        witness = Witness()

        def on_train_batch_end(self, trainer, *rest):
            saves = super().on_train_batch_end
            if trainer.global_step % EVERY:
                saves(trainer, *rest)
            else:
                self.witness.save(trainer.global_step, lambda _: saves(trainer, *rest))

    checkpoint = Checkpoint(
        dirpath="checkpoints", every_n_train_steps=EVERY, save_top_k=1, monitor="step", mode="max", save_last=True
    )
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[checkpoint],
    )  # fmt: skip
    trainer.fit(Module(), DataLoader(Data(), batch_size=4))


def trainer():
    """Hugging Face: the new checkpoint's folder is written, then the oldest is removed."""
    import transformers

    class Model(transformers.PreTrainedModel):
        config_class = transformers.PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.layer = torch.nn.Linear(8, 8)
            self.post_init()

        def forward(self, x, labels):
            return {"loss": (self.layer(x) - labels).pow(2).mean()}

    class Brackets(transformers.TrainerCallback):
        witness = Witness()

        def on_step_end(self, args, state, control, **_):
            if state.global_step % EVERY == 0:
                self.witness.look()
                tell(saves=state.global_step)

        def on_save(self, args, state, control, **_):
            tell(saved=state.global_step)
            self.witness.look()

    arguments = transformers.TrainingArguments(
        output_dir=".", max_steps=10**6, save_steps=EVERY, save_total_limit=1, use_cpu=True, report_to=[],
        logging_strategy="no", per_device_train_batch_size=4, disable_tqdm=True,
    )  # fmt: skip
    transformers.Trainer(
        Model(transformers.PretrainedConfig()), arguments, train_dataset=Data(), callbacks=[Brackets()]
    ).train()


def accelerate():
    """The oldest checkpoint's folder is removed before the new one is written."""
    from accelerate import Accelerator
    from accelerate.utils import ProjectConfiguration

    accelerator = Accelerator(
        cpu=True,
        project_config=ProjectConfiguration(project_dir=".", automatic_checkpoint_naming=True, total_limit=1),
    )
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Data(), batch_size=4))
    witness = Witness()
    for step, batch in enumerate(loader, 1):
        accelerator.backward(model(batch["x"]).sum())
        optimizer.step()
        optimizer.zero_grad()
        if step % EVERY == 0:
            witness.save(step, lambda _: accelerator.save_state())


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    globals()[sys.argv[1]]()
