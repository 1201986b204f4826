# SPDX-License-Identifier: MIT
"""A model to serve that needs no download: a Llama of two layers with random weights (vLLM makes
them, --load-format dummy) and a tokenizer trained on the sources of Python's own library.
model.py FOLDER"""
import json
import os
import sys
import sysconfig

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 2048
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY,
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "hidden_act": "silu",
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "float32",
}


def texts():
    library = sysconfig.get_path("stdlib")
    for name in ("argparse.py", "asyncio/base_events.py", "typing.py", "subprocess.py"):
        with open(os.path.join(library, name), encoding="utf-8") as f:
            yield f.read()


def make_tokenizer(path):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts(), trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(path)


def write(folder, name, content):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(content, f, indent=1)


def make(folder):
    os.makedirs(folder, exist_ok=True)
    make_tokenizer(os.path.join(folder, "tokenizer.json"))
    write(folder, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
        "model_max_length": CONFIG["max_position_embeddings"]})
    write(folder, "config.json", CONFIG)


if __name__ == "__main__":
    make(sys.argv[1])
