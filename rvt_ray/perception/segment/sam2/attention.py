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
_CPU_BLOCK = 2**19


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
        self._cos_sin: tuple[Tensor, Tensor] = (self._turns.real.clone(), self._turns.imag.clone())

    def begin(self, image: Tensor, image_position: Tensor) -> Tensor:
        """What does not depend on an object: the first self-attention of a frame.

        Args:
            image: features of the frame, shape (1, n, 256).
            image_position: (1, n, 256).
        """
        x = image + 0.1 * image_position if self._module.pos_enc_at_input else image
        return x + self._within(self._module.layers[0], x, image_position)

    def forward(
        self, begun: Tensor, image_position: Tensor, memory: Tensor, memory_position: Tensor, pointers: int
    ) -> Tensor:
        """The rest, for several objects.

        Args:
            begun: from `begin`, (1, n, 256).
            image_position: (1, n, 256).
            memory: per object the memories in blocks of n, then `pointers` tokens; (objects, m, 64).
            memory_position: (objects or 1, m, 64).

        Returns:
            (objects, n, 256).
        """
        module = self._module
        x = begun
        placed = memory + memory_position
        for number, layer in enumerate(module.layers):
            if number > 0:
                x = x + self._within(layer, x, image_position)
            normed = layer.norm2(x)
            query = normed + image_position if layer.pos_enc_at_cross_attn_queries else normed
            key = placed if layer.pos_enc_at_cross_attn_keys else memory
            x = x + self._cross(layer.cross_attn_image, query, key, memory, pointers)
            x = x + layer.linear2(layer.activation(layer.linear1(layer.norm3(x))))
        return module.norm(x)

    def _within(self, layer: Any, x: Tensor, image_position: Tensor) -> Tensor:
        normed = layer.norm1(x)
        where = normed + image_position if layer.pos_enc_at_attn else normed
        return layer.self_attn(where, where, normed)

    def _cross(self, attention: Any, query: Tensor, key: Tensor, memory: Tensor, pointers: int) -> Tensor:
        q = attention.q_proj(query)
        k = attention.k_proj(key)
        q = self._turn(q, q.shape[1])
        k = self._turn(k, k.shape[1] - pointers)
        q = q.expand(len(k), -1, -1)
        if q.is_cuda:
            value = attention.v_proj(memory)
            mixed = F.scaled_dot_product_attention(q[:, None], k[:, None], value[:, None])[:, 0]
        else:
            mixed = attention.v_proj(_average(q, k, memory.to(q.dtype)))
        return attention.out_proj(mixed)

    def _turn(self, x: Tensor, tokens: int) -> Tensor:
        """Rotary position encoding of the first `tokens` of x, (b, m, 256): feature maps in a row, each of n
        tokens; the rest is left as it is. May overwrite x."""
        part = x[:, :tokens].unflatten(1, (-1, len(self._turns))).unflatten(-1, (-1, 2))
        if x.dtype == torch.float32 and not x.is_cuda and not torch.compiler.is_compiling():
            torch.view_as_complex(part).mul_(self._turns)  # in place: nothing of this size is made
            return x
        # The compiler knows no complex numbers, and fuses this into what comes before and after.
        even, odd = part.float().unbind(-1)
        cos, sin = self._cos_sin
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
        turned = turned.flatten(3).flatten(1, 2).to(x.dtype)
        return turned if tokens == x.shape[1] else torch.cat((turned, x[:, tokens:]), dim=1)


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
