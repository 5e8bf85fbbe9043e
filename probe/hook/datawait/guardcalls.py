"""The functions whose call alone is a save, by the module that holds them.

Frameworks are listed beside the writers that they end up calling because they leave something behind before they do:
a folder ``checkpoint-500`` with a configuration and no weights is what a later run would resume from. So are those
that send a file to a registry, where nothing can be undone.
"""

from __future__ import annotations

from typing import Dict, Tuple

SAVES: Dict[str, Tuple[str, ...]] = {
    "torch": ("save",),
    "torch.serialization": ("save", "_open_zipfile_writer", "_legacy_save"),
    "torch.jit": ("save", "save_jit_module_to_flatbuffer"),
    "torch.export": ("save",),
    "torch.onnx": ("export",),
    "safetensors": ("serialize_file",),
    "safetensors.torch": ("save_file", "save_model", "serialize_file"),
    "safetensors.numpy": ("save_file", "serialize_file"),
    "torch.distributed.checkpoint": ("save", "save_state_dict", "async_save"),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "save_state_dict", "async_save"),
    "torch.distributed._shard.checkpoint": ("save_state_dict",),
    "torch.distributed._shard.checkpoint.state_dict_saver": ("save_state_dict",),
    "onnx": ("save", "save_model"),
}

# module -> class -> methods
METHODS: Dict[str, Dict[str, Tuple[str, ...]]] = {
    # C++ writers that go through no function above
    "torch.jit._script": {"RecursiveScriptModule": ("save", "_save_for_lite_interpreter", "save_to_buffer")},
    "torch.package.package_exporter": {"PackageExporter": ("__init__",)},
    # frameworks
    "lightning.pytorch.trainer.trainer": {"Trainer": ("save_checkpoint",)},
    "pytorch_lightning.trainer.trainer": {"Trainer": ("save_checkpoint",)},
    "lightning.fabric.fabric": {"Fabric": ("save",)},
    "transformers.trainer": {"Trainer": ("_save_checkpoint", "save_model", "push_to_hub")},
    "transformers.modeling_utils": {"PreTrainedModel": ("save_pretrained",)},
    "accelerate.accelerator": {"Accelerator": ("save_state", "save_model", "save")},
    "deepspeed.runtime.engine": {"DeepSpeedEngine": ("save_checkpoint", "save_16bit_model")},
    "composer.trainer.trainer": {"Trainer": ("save_checkpoint",)},
    # registries
    "huggingface_hub.hf_api": {"HfApi": ("create_commit", "upload_file", "upload_folder", "delete_file")},
    "wandb.sdk.wandb_run": {"Run": ("log_artifact", "log_model", "link_model")},
    "mlflow.tracking.client": {"MlflowClient": ("log_artifact", "log_artifacts")},
    "google.cloud.storage.blob": {"Blob": ("_do_upload", "delete")},
}

# Object stores by what the request does: boto3, s3fs, the AWS side of smart_open.
REQUESTS: Dict[str, Dict[str, Tuple[str, ...]]] = {
    "botocore.client": {"BaseClient": ("_make_api_call",)},
    "aiobotocore.client": {"AioBaseClient": ("_make_api_call",)},
}
CHANGES = ("Put", "Upload", "Delete", "Copy", "CreateMultipart", "CompleteMultipart")

# Writers in C that open the file themselves; the mode tells what they will do to it.
OPENERS: Dict[str, Dict[str, Tuple[str, ...]]] = {"h5py._hl.files": {"File": ("__init__",)}}

MODULES = (*SAVES, *METHODS, *REQUESTS, *OPENERS)
