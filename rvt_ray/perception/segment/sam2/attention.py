"""Memory attention of many objects at once.

The same arithmetic as `sam2`'s module, arranged so that what objects share is computed once (the first
self-attention and its queries do not depend on an object) and, on a CPU, with fewer multiplications: the
attended memories have 64 channels, their values 256; since the value projection is linear, memories are
averaged first and projected after, which is a quarter of that product.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (its customary name)
from torch import Tensor

# Attention weights of this many numbers are made at a time on a CPU: they stay in its cache.
_CPU_BLOCK = 2**20


class MemoryAttention:
    """Conditions the image features of a frame on the memories of each of several objects.

    Args:
        module: `SAM2Base.memory_attention`.
        side: of the square feature map.
    """

    def __init__(self, module: Any, side: int, device: torch.device) -> None:
        self._module = module
        cross = module.layers[0].cross_attn_image
        if cross.num_heads != 1:
            raise ValueError("the sam2.1 models have one head in memory attention; this one has more")
        self._turns: Tensor = cross.compute_cis(end_x=side, end_y=side).to(device)

    def forward(
        self, image: Tensor, image_position: Tensor, memory: Tensor, memory_position: Tensor, pointers: int
    ) -> Tensor:
        """One frame, all objects.

        Args:
            image: features of the frame, shape (1, n, 256).
            image_position: (1, n, 256).
            memory: per object the memories in blocks of n, then `pointers` tokens; (objects, m, 64).
            memory_position: (objects or 1, m, 64).

        Returns:
            (objects, n, 256).
        """
        module = self._module
        x = image + 0.1 * image_position if module.pos_enc_at_input else image
        placed = memory + memory_position
        for layer in module.layers:
            normed = layer.norm1(x)
            where = normed + image_position if layer.pos_enc_at_attn else normed
            x = x + layer.self_attn(where, where, normed)
            normed = layer.norm2(x)
            query = normed + image_position if layer.pos_enc_at_cross_attn_queries else normed
            key = placed if layer.pos_enc_at_cross_attn_keys else memory
            x = x + self._cross(layer.cross_attn_image, query, key, memory, pointers)
            x = x + layer.linear2(layer.activation(layer.linear1(layer.norm3(x))))
        return module.norm(x)

    def _cross(self, attention: Any, query: Tensor, key: Tensor, memory: Tensor, pointers: int) -> Tensor:
        q = self._turn(attention.q_proj(query))
        k = attention.k_proj(key)
        spatial = k.shape[1] - pointers
        k = torch.cat((self._turn(k[:, :spatial]), k[:, spatial:]), 1) if pointers else self._turn(k)
        q = q.expand(len(k), -1, -1)
        if q.is_cuda:
            value = attention.v_proj(memory)
            mixed = F.scaled_dot_product_attention(q[:, None], k[:, None], value[:, None])[:, 0]
        else:
            mixed = attention.v_proj(_average(q, k, memory.to(q.dtype)))
        return attention.out_proj(mixed)

    def _turn(self, x: Tensor) -> Tensor:
        """Rotary position encoding of one or several feature maps in a row, shape (b, maps * n, 256)."""
        b, tokens, channels = x.shape
        n = self._turns.shape[0]
        pairs = torch.view_as_complex(x.float().reshape(b, tokens // n, n, channels // 2, 2))
        return torch.view_as_real(pairs * self._turns).view(b, tokens, channels).to(x.dtype)


def _average(q: Tensor, k: Tensor, memory: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(c)) memory: shape (b, n, c), (b, m, c), (b, m, d) -> (b, n, d)."""
    b, n, channels = q.shape
    q = q * (1.0 / math.sqrt(channels))
    out = memory.new_empty(b, n, memory.shape[2])
    step = max(16, _CPU_BLOCK // k.shape[1])
    for i in range(b):
        turned = k[i].T
        for start in range(0, n, step):
            weights = torch.softmax(q[i, start : start + step] @ turned, dim=-1)
            torch.mm(weights, memory[i], out=out[i, start : start + step])
    return out
