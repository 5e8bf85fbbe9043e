"""Hugging Face Trainer: a BERT made from a configuration, gradients accumulated over four batches, evaluations, saves.

Trainer fetches all four batches of a step before it computes on the first.

    datawait record -- python3 train_hf_trainer.py
    datawait diagnose --gpu emulated -- python3 train_hf_trainer.py --steps 100000 --every 100000
"""

import argparse
import tempfile

import known
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

ACCUMULATE = 4


class Texts(torch.utils.data.Dataset):
    """Tokens of `length` texts; each costs what `build` does."""

    def __init__(self, length, build):
        self.length, self.build = length, build

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.build()
        return {"input_ids": torch.zeros(8, dtype=torch.long), "labels": torch.tensor(index % 2)}


class Bert(BertForSequenceClassification):
    def forward(self, input_ids, labels, **more):
        compute()
        return super().forward(input_ids, labels=labels, **more)


class OwnClock(TrainerCallback):
    def __init__(self):
        self.clock = known.Clock()

    def on_step_begin(self, *_, **__):
        self.clock.arrived()

    def on_step_end(self, *_, **__):
        self.clock.done()

    def on_epoch_begin(self, *_, **__):
        self.clock.away()

    def on_evaluate(self, *_, **__):
        self.clock.away()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=15, help="evaluate and save after so many steps")
    chosen = parser.parse_args()
    config = BertConfig(
        vocab_size=32, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=chosen.steps,
            per_device_train_batch_size=known.BATCH,
            per_device_eval_batch_size=known.BATCH,
            gradient_accumulation_steps=ACCUMULATE,
            dataloader_num_workers=known.WORKERS,
            eval_strategy="steps",
            save_strategy="steps",
            eval_steps=chosen.every,
            save_steps=chosen.every,
            save_total_limit=1,
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(
            model=Bert(config),
            args=arguments,
            train_dataset=Texts(chosen.steps * ACCUMULATE * known.BATCH, known.build),
            eval_dataset=Texts(16, lambda: None),
            callbacks=[OwnClock()],
        )
        trainer.train()


if __name__ == "__main__":
    compute = known.Compute()
    main()
