"""The clean plate: what the scene looks like without the things that move, and what differs from it.

A fixed number of frames spread over the shot is brought into one frame's coordinates by the camera model.
Per pixel the colours seen there are grouped; the plate shows the most supported one, where a sight of
something that moves counts little. A thing that stands still for long is as good a candidate as the scene
behind it. Between two such candidates the surroundings decide: starting at pixels that only ever showed one
colour, the plate is grown inwards, each pixel taking the candidate that continues its neighbours. So a
thing that moves once is foreground before, during and after.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Matrix = npt.NDArray[np.float64]

NOISE = 7.0  # CIELAB units that compression and light leave between two sights of the same surface
_NOISE_RANGE = (4.5, 9.0)
_MOVING_WEIGHT = 0.25  # of a sight of something that moves
_RIVAL_SIGHTS = 1.5
_RIVAL_SHARE = 0.12
_SHADOW_SHARE = 0.35  # a shadow takes at most this much of the lightness
_SHADOW_TINT = 6.0  # CIELAB units that it may add to a and b
_EDGE_CAP = 30.0  # CIELAB; an edge of the scene may be sharper than any difference of candidates
_MIN_SIGHTS = 3


@dataclass
class Sample:
    """One frame of the shot in its own coordinates.

    Attributes:
        lab: (h, w, 3).
        moving: pixels that the camera's motion does not explain.
        to_reference: 3x3, pixels of this frame to pixels of the plate.
    """

    lab: Floats
    moving: Mask
    to_reference: Matrix


@dataclass
class Plate:
    """Attributes:
    lab: (H, W, 3), in the reference frame's coordinates shifted by `offset`.
    spread: (H, W), how much the background itself varies (leaves, flicker), CIELAB units.
    valid: (H, W), where enough sights agree to call it background.
    noise: CIELAB units that two sights of the same surface differ by; bounds the difference that counts.
    offset: 3x3, pixels of the reference frame to pixels of the plate.
    """

    lab: Floats
    spread: Floats
    valid: Mask
    offset: Matrix
    noise: float


def build_plate(samples: list[Sample], height: int, width: int, margin: tuple[int, int]) -> Plate:
    """The plate around a reference frame of size height x width.

    Args:
        margin: pixels added at each side in x and y, for the frames that look beyond the reference.
    """
    mx, my = margin
    offset = np.array([[1.0, 0, mx], [0, 1.0, my], [0, 0, 1.0]])
    size = (width + 2 * mx, height + 2 * my)
    stack, seen, moves = [], [], []
    for sample in samples:
        m = (offset @ sample.to_reference)[:2]
        stack.append(cv2.warpAffine(sample.lab, m, size, flags=cv2.INTER_LINEAR))
        full = np.ones(sample.moving.shape, np.uint8)
        seen.append(cv2.warpAffine(full, m, size, flags=cv2.INTER_NEAREST) > 0)
        moves.append(cv2.warpAffine(sample.moving.astype(np.uint8), m, size, flags=cv2.INTER_NEAREST) > 0)
    labs, in_view, moving = np.stack(stack), np.stack(seen), np.stack(moves)
    first, first_support, second, second_support = _two_colours(labs, in_view, moving)
    lab = _grow(first, first_support, second, second_support)
    deviation = np.abs(labs - lab).max(axis=3)
    near = in_view & (deviation < 2 * NOISE)
    spread = _masked_median(np.minimum(deviation, 2 * NOISE)[..., None], near)[..., 0]
    noise = float(np.clip(2.0 + 3.0 * np.median(deviation[near]), *_NOISE_RANGE)) if near.any() else NOISE
    valid = in_view.sum(axis=0) >= min(_MIN_SIGHTS, len(samples))
    return Plate(lab=lab, spread=spread, valid=valid, offset=offset, noise=noise)


def difference(lab: Floats, plate: Plate, from_reference: Matrix) -> tuple[Floats, Mask]:
    """How much a frame differs from the plate, in units of its noise there (1 = at the threshold).

    A surface that only got darker, a shadow, counts half.

    Args:
        lab: the frame, (h, w, 3).
        from_reference: 3x3, pixels of the plate's reference frame to pixels of this frame.

    Returns:
        (h, w) difference and (h, w) whether the plate is known there.
    """
    height, width = lab.shape[:2]
    m = (from_reference @ np.linalg.inv(plate.offset))[:2]
    here = cv2.warpAffine(plate.lab, m, (width, height), flags=cv2.INTER_LINEAR)
    spread = cv2.warpAffine(plate.spread, m, (width, height), flags=cv2.INTER_LINEAR)
    valid = cv2.warpAffine(plate.valid.astype(np.uint8), m, (width, height), flags=cv2.INTER_NEAREST) > 0
    if not valid.any():
        return np.zeros((height, width), np.float32), valid
    # Exposure drifts: what the whole picture does is not foreground.
    lab = lab - np.median((lab - here)[valid][::4], axis=0).astype(np.float32)
    # Within one pixel of it the plate has any colour between its neighbours: edges may wobble that much.
    kernel = np.ones((3, 3), np.uint8)
    outside = np.maximum(np.maximum(lab - cv2.dilate(here, kernel), cv2.erode(here, kernel) - lab), 0.0)
    distance = np.sqrt((outside**2 * np.array([0.7, 1.3, 1.3], np.float32)).sum(axis=2))
    strength = cv2.GaussianBlur(np.where(valid, distance, 0.0).astype(np.float32), (3, 3), 0)
    strength /= plate.noise + 2.0 * spread
    change = lab - here
    shadow = (
        (change[..., 0] < -2)
        & (change[..., 0] > -_SHADOW_SHARE * here[..., 0])
        & (np.abs(change[..., 1:]).sum(axis=2) < _SHADOW_TINT)
    )
    strength[shadow] *= 0.5
    return strength, valid


def _two_colours(labs: Floats, in_view: Mask, moving: Mask) -> tuple[Floats, Floats, Floats, Floats]:
    """Per pixel the two most supported colours, (h, w, 3) each, and their support in sights, (h, w) each.

    The support of the second is 0 where there is no other colour.
    """
    weight = np.where(in_view, np.where(moving, _MOVING_WEIGHT, 1.0), 0.0).astype(np.float32)
    channels = [np.ascontiguousarray(labs[..., c] * 4).astype(np.int16) for c in range(3)]
    first, support = _peak(labs, channels, weight)
    distance = np.abs(labs - first).max(axis=3)
    second, other = _peak(labs, channels, np.where(distance < 1.5 * NOISE, 0.0, weight).astype(np.float32))
    return first, support, second, other


def _peak(labs: Floats, channels: list[npt.NDArray[np.int16]], weight: Floats) -> tuple[Floats, Floats]:
    best = np.zeros(weight.shape[1:], np.float32)
    winner = np.zeros(weight.shape[1:], np.int64)
    reach = np.int16(4 * NOISE)
    for i in range(len(labs)):
        close = np.abs(channels[0] - channels[0][i]) < reach
        for channel in channels[1:]:
            close &= np.abs(channel - channel[i]) < reach
        support = np.einsum("nhw,nhw->hw", close, weight, dtype=np.float32)
        wins = (support > best) & (weight[i] > 0)
        best[wins], winner[wins] = support[wins], i
    centre = np.take_along_axis(labs, winner[None, :, :, None], axis=0)[0]
    near = (np.abs(labs - centre).max(axis=3) < NOISE) * weight
    mean = np.einsum("nhw,nhwc->hwc", near, labs) / np.maximum(near.sum(axis=0), 1e-6)[..., None]
    return np.where((best > 0)[..., None], mean, centre).astype(np.float32), best


def _grow(first: Floats, first_support: Floats, second: Floats, second_support: Floats) -> Floats:
    """The plate out of two candidates per pixel: what continues the neighbours that are settled already."""
    rival = (second_support >= _RIVAL_SIGHTS) & (second_support >= _RIVAL_SHARE * first_support)
    settled = ~rival
    plate = np.where(settled[..., None], first, 0.0).astype(np.float32)
    if not settled.any():
        return first
    prior = 2.0 * (np.log(np.maximum(first_support, 0.1)) - np.log(np.maximum(second_support, 0.1)))
    kernel = (5, 5)
    certain = 16.0
    while not settled.all():
        weight = cv2.boxFilter(settled.astype(np.float32), -1, kernel, normalize=False)
        front = ~settled & (weight > 4)
        if not front.any():
            front = ~settled & (weight > 0)
        around = cv2.boxFilter(plate, -1, kernel, normalize=False)[front] / weight[front][:, None]
        step_first = np.minimum(np.linalg.norm(first[front] - around, axis=1), _EDGE_CAP)
        step_second = np.minimum(np.linalg.norm(second[front] - around, axis=1), _EDGE_CAP)
        margin = step_second - step_first + prior[front]
        # Clear cases first: they may settle what is doubtful now.
        ready = np.abs(margin) >= certain
        if not ready.any():
            certain = certain / 2 if certain > 1 else 0.0
            continue
        choice = np.where((margin >= 0)[:, None], first[front], second[front])
        y, x = np.nonzero(front)
        plate[y[ready], x[ready]] = choice[ready]
        settled[y[ready], x[ready]] = True
    return plate


def _masked_median(values: Floats, use: Mask) -> Floats:
    """Median over axis 0 of what may be used, of everything where nothing may; (n, h, w, c), (n, h, w)."""
    n = len(values)
    use = use | ~use.any(axis=0)
    # Values left out go to both ends in equal numbers, so that the middle stays where it is.
    rank = np.cumsum(~use, axis=0)
    filler = np.where(rank % 2 == 0, np.inf, -np.inf).astype(np.float32)
    padded = np.where(use[..., None], values, filler[..., None])
    middle = np.partition(padded, n // 2, axis=0)[n // 2]
    lower = np.partition(padded, max((n - 1) // 2, 0), axis=0)[(n - 1) // 2]
    out = np.where(np.isfinite(middle), middle, lower)
    return np.where(np.isfinite(out), out, values[0]).astype(np.float32)


def quantise(lab: Floats) -> npt.NDArray[np.int32]:
    """A colour bin 0..2047 per pixel: 8 steps of lightness, 16 x 16 of a and b (8 CIELAB units each)."""
    l_bin = np.clip(lab[..., 0] / 12.5, 0, 7).astype(np.int32)
    ab = np.clip((lab[..., 1:] + 64) / 8, 0, 15).astype(np.int32)
    return (l_bin << 8) | (ab[..., 0] << 4) | ab[..., 1]
