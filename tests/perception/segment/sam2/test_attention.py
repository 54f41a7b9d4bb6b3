"""The two ways of rotary encoding, and the two orders of averaging and projecting, are one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from rvt_ray.perception.segment.sam2 import attention
from rvt_ray.perception.segment.sam2.attention import MemoryAttention
from rvt_ray.perception.segment.sam2.network import Network


@pytest.fixture
def module(network: Network) -> MemoryAttention:
    return MemoryAttention(network.model.memory_attention, network.side, torch.device("cpu"))


@pytest.mark.parametrize("pointers", [0, 8])
def test_rotary_encoding_without_complex_numbers_is_the_same(
    pointers: int, module: MemoryAttention, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = network.side**2
    x = torch.randn(2, 3 * n + pointers, 256, generator=torch.Generator().manual_seed(0))
    plain = module._turn(x.clone(), 3 * n)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert torch.allclose(module._turn(x, 3 * n), plain, atol=1e-5)
    assert torch.equal(plain[:, 3 * n :], x[:, 3 * n :]), "pointers have no place in the picture"
    assert not torch.allclose(plain[:, : 3 * n], x[:, : 3 * n])


@pytest.mark.parametrize("block", [1, 300, 2**19])
def test_averaging_in_blocks_is_attention(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_CPU_BLOCK", block)
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 50, 32, generator=generator), torch.randn(2, 70, 32, generator=generator)
    memory = torch.randn(2, 70, 8, generator=generator)
    expected = F.scaled_dot_product_attention(q, k, memory)
    assert torch.allclose(attention._average(q, k, memory), expected, atol=1e-5)
