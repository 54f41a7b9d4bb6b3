"""The mask decoder over many prompts, doing only the work whose result is looked at.

The order of operations is that of `sam2`'s `MaskDecoder`; what differs: the image side of the first layer is
computed once per frame instead of once per prompt, and masks are drawn only for the prompts and tokens that
are asked for, after their predicted quality is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (its customary name)
from torch import Tensor


@dataclass(frozen=True)
class Decoded:
    """What the decoder's transformer says, before masks are drawn. b prompts, n = side * side.

    Attributes:
        image: the image as each prompt sees it, (b, n, 256).
        tokens: of the single mask and of the three alternatives, (b, 4, 256).
        quality: predicted IoU of each of the four, 0..1, (b, 4).
        presence: logit of "the object is on this frame", (b, 1).
    """

    image: Tensor
    tokens: Tensor
    quality: Tensor
    presence: Tensor


def decode(decoder: Any, image: Tensor, position: Tensor, sparse: Tensor, dense: Tensor) -> Decoded:
    """Run the transformer.

    Args:
        decoder: `SAM2Base.sam_mask_decoder`.
        image: (b, 256, h, w); or (f, 256, h, w) for b prompts of which each b / f in a row are on one frame.
        position: of the image, (1, 256, h, w).
        sparse: prompt tokens, (b or 1, t, 256).
        dense: mask prompts, (b or 1, 256, h, w).
    """
    prompts = max(len(image), len(sparse), len(dense))
    own = torch.cat((decoder.obj_score_token.weight, decoder.iou_token.weight, decoder.mask_tokens.weight))
    tokens = torch.cat((own.expand(prompts, -1, -1), sparse.expand(prompts, -1, -1)), dim=1)
    source = (image + dense).flatten(2).transpose(1, 2)
    queries, seen = _two_way(decoder.transformer, source, position.flatten(2).transpose(1, 2), tokens)
    return Decoded(
        image=seen,
        tokens=queries[:, 2 : 2 + decoder.num_mask_tokens],
        quality=decoder.iou_prediction_head(queries[:, 1]),
        presence=decoder.pred_obj_score_head(queries[:, 0]),
    )


def draw(
    decoder: Any, decoded: Decoded, fine: tuple[Tensor, Tensor], rows: Tensor, columns: Tensor
) -> Tensor:
    """Mask logits of some tokens of some prompts.

    Args:
        fine: fine features (stride 4, stride 8) of the frames, batch of f as in `decode`.
        rows: which prompts, (r,).
        columns: which of their four tokens, (r, k).

    Returns:
        (r, k, 4h, 4w).
    """
    frames, prompts = len(fine[0]), len(decoded.image)
    finer, less_fine = fine if frames == 1 else (level[rows // (prompts // frames)] for level in fine)
    side = less_fine.shape[-1] // 2
    seen = decoded.image[rows].transpose(1, 2)
    seen = seen.reshape(len(rows), -1, side, side)
    enlarge, norm, act, enlarge_more, act_more = decoder.output_upscaling
    seen = act(norm(enlarge(seen) + less_fine))
    seen = act_more(enlarge_more(seen) + finer)
    tokens = decoded.tokens[rows]
    wanted = torch.unique(columns).tolist()
    brush = tokens.new_zeros(len(rows), decoder.num_mask_tokens, seen.shape[1])
    for column in wanted:
        brush[:, column] = decoder.output_hypernetworks_mlps[column](tokens[:, column]).to(brush.dtype)
    brush = torch.take_along_dim(brush, columns[:, :, None], dim=1)
    return torch.bmm(brush, seen.flatten(2).to(brush.dtype)).view(*columns.shape, *seen.shape[-2:])


def _two_way(transformer: Any, keys: Tensor, position: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens and image attend to each other. `keys` has a batch of frames until the tokens change it."""
    queries = tokens
    for layer in transformer.layers:
        if layer.skip_first_layer_pe:
            queries = _attend(layer.self_attn, queries, queries, queries)
        else:
            placed = queries + tokens
            queries = queries + _attend(layer.self_attn, placed, placed, queries)
        queries = layer.norm1(queries)
        where = keys + position
        found = _attend(layer.cross_attn_token_to_image, queries + tokens, where, keys)
        queries = layer.norm2(queries + found)
        queries = layer.norm3(queries + layer.mlp(queries))
        answer = _attend(layer.cross_attn_image_to_token, where, queries + tokens, queries)
        keys = layer.norm4(_spread(keys, len(answer)) + answer)
    found = _attend(transformer.final_attn_token_to_image, queries + tokens, keys + position, keys)
    return transformer.norm_final_attn(queries + found), keys


def _attend(attention: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Multi-head attention whose inputs may have smaller batches: each is projected once, then shared."""
    q, k, v = attention.q_proj(query), attention.k_proj(key), attention.v_proj(value)
    batch = max(len(q), len(k), len(v))
    q, k, v = (_heads(x, attention.num_heads, batch) for x in (q, k, v))
    mixed = F.scaled_dot_product_attention(q, k, v)
    return attention.out_proj(mixed.transpose(1, 2).flatten(2))


def _heads(x: Tensor, heads: int, batch: int) -> Tensor:
    b, n, channels = x.shape
    return _spread(x.reshape(b, n, heads, channels // heads).transpose(1, 2), batch)


def _spread(x: Tensor, batch: int) -> Tensor:
    """Frames to prompts: each repeated for its share of the batch."""
    if len(x) == batch:
        return x
    if len(x) == 1:
        return x.expand(batch, *x.shape[1:])
    return x.repeat_interleave(batch // len(x), dim=0)
