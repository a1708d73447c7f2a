"""Writes a small Llama of random weights as GGUF: a real engine's load without a download.

python tests/engine/tiny_model.py OUT.gguf [--layers 2]

Its tokens are printable ASCII, each at least one visible character of a stream. Its weights never
favour an end, so `max_tokens` alone decides how long an answer is, on any server.
"""

from __future__ import annotations

import argparse
import itertools
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]

_SPECIAL = ("<s>", "</s>", "<unk>")
_CHAT = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
_SPACE, _NEWLINE = "\u0120", "\u010a"  # as a byte-level vocabulary writes them


@dataclass(frozen=True)
class Shape:
    """How large the model is: more layers, longer steps.

    Few layers and wide ones: on a CPU attention is slow, and a step would soon depend on little
    but the context, which is not so of the models that are served.
    """

    layers: int = 2
    hidden: int = 512
    feed_forward: int = 8192
    heads: int = 8
    context: int = 32768


def vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Returns tokens and merges: single characters, pairs of letters, and pairs after a space."""
    single = [chr(code) for code in range(33, 127)] + [_SPACE, _NEWLINE]
    alphabet = string.ascii_lowercase
    letters = list(itertools.product(alphabet, alphabet))
    pairs = [first + second for first, second in letters]
    merges = [*letters, *((_SPACE, pair) for pair in pairs)]
    return [*_SPECIAL, *single, *pairs, *(_SPACE + pair for pair in pairs)], merges


def tensors(shape: Shape, tokens: int, rng: np.random.Generator) -> Iterator[tuple[str, Weights]]:
    """Gives each tensor's name and values; the rows that end an answer are zero in the last one.

    All other logits spread by 5 about zero, so that one that is zero is never among the 40 best
    that llama.cpp draws from.
    """

    def normal(rows: int, columns: int, deviation: float) -> Weights:
        return (deviation * rng.standard_normal((rows, columns))).astype(np.float32)

    one = np.ones(shape.hidden, np.float32)
    wide, inner = shape.hidden, shape.feed_forward
    yield "token_embd", normal(tokens, wide, 1.0)
    for layer in range(shape.layers):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}", one
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{name}", normal(wide, wide, 0.02)
        for name in ("ffn_gate", "ffn_up"):
            yield f"blk.{layer}.{name}", normal(inner, wide, 0.02)
        yield f"blk.{layer}.ffn_down", normal(wide, inner, 0.02)
    yield "output_norm", one
    last = normal(tokens, wide, 5 / wide**0.5)
    last[: len(_SPECIAL)] = 0
    yield "output", last


def write(path: Path, shape: Shape, rng: np.random.Generator) -> None:
    """Writes the model, its matrices in 8 bits."""
    tokens, merges = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    _write_header(writer, shape)
    _write_tokenizer(writer, tokens, merges)
    for name, values in tensors(shape, len(tokens), rng):
        if values.ndim == 1:
            writer.add_tensor(f"{name}.weight", values)
        else:
            eight = gguf.GGMLQuantizationType.Q8_0
            stored = gguf.quants.quantize(values, eight)
            writer.add_tensor(f"{name}.weight", stored, raw_dtype=eight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_header(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_name("tiny-random")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.hidden // shape.heads)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)


def _write_tokenizer(
    writer: gguf.GGUFWriter, tokens: list[str], merges: list[tuple[str, str]]
) -> None:
    control, normal = int(gguf.TokenType.CONTROL), int(gguf.TokenType.NORMAL)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    special = len(_SPECIAL)
    writer.add_token_types([control] * special + [normal] * (len(tokens) - special))
    writer.add_token_merges([f"{first} {second}" for first, second in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(2)
    writer.add_chat_template(_CHAT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--layers", type=int, default=Shape.layers)
    asked = parser.parse_args()
    write(asked.path, Shape(asked.layers), np.random.default_rng(1))
