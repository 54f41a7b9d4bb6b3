"""The static part of a scene: a textured ground and a backdrop, drawn once per clip.

Because the camera only shifts and scales the image (see `spec`), one picture in the reference frame serves
the whole clip: every frame is a warp of it. It is textured so that camera motion can be measured.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from rvt_ray.synthetic.spec import Array, Camera, SceneSpec

Picture = npt.NDArray[np.float32]  # linear RGB, shape (height, width, 3)

BACKDROP_Z: dict[str, float] = {"studio": 11.0, "playground": 13.0, "park": 30.0}  # metres
_OVERSAMPLE = 2


class Noise:
    """Smooth, tiling value noise in [0, 1] from a seeded table."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._table = rng.random((128, 128), np.float32)

    def __call__(self, x: Array, y: Array) -> Picture:
        """Noise with features about one unit large."""
        grid = (np.mod(x, 128).astype(np.float32), np.mod(y, 128).astype(np.float32))
        return np.asarray(cv2.remap(self._table, *grid, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP))

    def octaves(self, x: Array, y: Array, count: int = 4) -> Picture:
        """Sum of octaves, in [0, 1]."""
        total = sum(self(x * 2**i + 17.3 * i, y * 2**i + 5.1 * i) / 2**i for i in range(count))
        return np.asarray(total / (2 - 2.0 ** (1 - count)), np.float32)

    def cells(self, i: Array, j: Array) -> Picture:
        """One random number in [0, 1] per integer cell."""
        rows, columns = np.mod(i, 128).astype(np.int64), np.mod(j, 128).astype(np.int64)
        return np.asarray(self._table[rows, columns])


class Background:
    """Background colour and depth of any frame of a spec."""

    def __init__(self, spec: SceneSpec, camera: Camera) -> None:
        self._spec, self._camera = spec, camera
        self.backdrop_z = BACKDROP_Z[spec.environment]
        corners = np.array([[0.0, 0.0], [spec.width - 1.0, spec.height - 1.0]])
        centre, zoom = camera.centre, camera.zoom[:, None]
        low = (centre + (corners[0] - centre - camera.shift) / zoom).min(axis=0) - 2
        high = (centre + (corners[1] - centre - camera.shift) / zoom).max(axis=0) + 2
        self._origin = np.floor(low)
        self._detail = max(1.0, min(4.0, float(camera.zoom.max())))
        # A still camera takes the canvas pixel by pixel; else there is room for sub-pixel shifts.
        size = np.ceil((high - self._origin) * self._detail).astype(int) + 1
        self._canvas = self._paint(int(size[0]), int(size[1]))

    def colour(self, frame: int) -> Picture:
        """Linear RGB of the frame without objects."""
        zoom, detail = float(self._camera.zoom[frame]), self._detail
        scale = zoom / detail
        centre = self._camera.centre
        offset = centre + self._camera.shift[frame] + zoom * (self._origin - centre)
        # The canvas pixel (i, j) shows the reference point origin + (i, j) / detail.
        matrix = np.array([[scale, 0, offset[0]], [0, scale, offset[1]]])
        size = (self._spec.width, self._spec.height)
        picture = cv2.warpAffine(
            self._canvas, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        return np.asarray(picture, np.float32)

    def depth(self, dy: Array) -> Array:
        """Metric depth of ground and backdrop for directions with this y (see `Camera.rays`)."""
        with np.errstate(divide="ignore"):
            ground = np.where(dy < 0, -self._camera.height / np.minimum(dy, -1e-12), np.inf)
        return np.asarray(np.minimum(ground, self.backdrop_z), np.float64)

    def _paint(self, width: int, height: int) -> Picture:
        """The canvas, drawn oversampled and averaged down."""
        n = _OVERSAMPLE
        step = 1.0 / (self._detail * n)
        rx = self._origin[0] + (np.arange(width * n) - (n - 1) / 2) * step
        ry = self._origin[1] + (np.arange(height * n) - (n - 1) / 2) * step
        camera = self._camera
        dx = (rx - camera.centre[0]) / camera.focal
        dy = (camera.horizon - (ry - camera.centre[1])) / camera.focal
        z = self.depth(dy)
        wall = z >= self.backdrop_z
        rng = np.random.default_rng([self._spec.seed, 7])
        noise = Noise(rng)
        canvas = np.zeros((height * n, width * n, 3), np.float32)
        paint_ground, paint_wall = _PAINTERS[self._spec.environment]
        if wall.any():
            x = np.broadcast_to(dx[None, :] * self.backdrop_z, (int(wall.sum()), width * n))
            y = np.broadcast_to((camera.height + dy[wall] * self.backdrop_z)[:, None], x.shape)
            canvas[wall] = paint_wall(x, y, noise)
        if not wall.all():
            depth = z[~wall]
            x = dx[None, :] * depth[:, None]
            far = np.broadcast_to(depth[:, None], x.shape)
            ground = paint_ground(x, far, noise)
            # Fine texture far away would only flicker: fade it into its own mean.
            mean = ground.mean(axis=(0, 1))
            fade = np.clip((far / self.backdrop_z) ** 2 * 0.6, 0, 0.6)[..., None].astype(np.float32)
            canvas[~wall] = ground * (1 - fade) + mean * fade
        small = cv2.resize(canvas, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(small, np.float32)


def _rgb(r: float, g: float, b: float) -> Picture:
    """sRGB 0..1 to linear."""
    return np.asarray(np.array([r, g, b]) ** 2.2, np.float32)


def _tint(colour: Picture, factor: npt.NDArray[np.floating]) -> Picture:
    return np.asarray(colour * factor[..., None], np.float32)


def _seam(position: Array, width: float) -> npt.NDArray[np.bool_]:
    """Within `width` of an integer."""
    share = np.mod(position, 1.0)
    return np.asarray((share < width) | (share > 1 - width))


def _planks(x: Array, z: Array, noise: Noise) -> Picture:
    row = np.floor(x / 0.42)
    along = z / 2.4 + noise.cells(row, row * 0 + 3) * 5
    tone = 0.82 + 0.3 * noise.cells(row, np.floor(along))
    grain = 0.88 + 0.24 * noise.octaves(x * 22 + row * 9, z * 1.6, 3)
    seam = _seam(x / 0.42, 0.02) | _seam(along, 0.006)
    return _tint(_rgb(0.72, 0.60, 0.46), tone * grain * np.where(seam, 0.55, 1.0))


def _studio_wall(x: Array, y: Array, noise: Noise) -> Picture:
    plaster = 0.94 + 0.12 * noise.octaves(x * 1.5, y * 1.5, 5)
    light = 1.08 - 0.05 * np.abs(x + 2) / 4
    picture = _tint(_rgb(0.70, 0.75, 0.77), plaster * np.clip(light, 0.7, 1.1))
    panel = (y < 1.05) & (y > 0.16)
    picture[panel] = _tint(_rgb(0.86, 0.85, 0.82), plaster[panel])
    groove = panel & (_seam(x / 0.9, 0.012) | (np.abs(y - 0.96) < 0.015) | (np.abs(y - 0.27) < 0.015))
    picture[groove] *= 0.72
    picture[(y <= 0.16) | (np.abs(y - 1.05) < 0.035)] = _rgb(0.93, 0.92, 0.89)
    # Framed prints give the wall something to look at, and the camera estimator corners to follow.
    cell = np.floor(x / 2.2)
    u = np.mod(x / 2.2, 1.0)
    height = 0.75 + 0.5 * noise.cells(cell, cell * 0 + 11)
    v = (y - 1.55) / height
    frame = (np.abs(u - 0.5) < 0.3) & (v > 0) & (v < 1)
    inner = (np.abs(u - 0.5) < 0.265) & (v > 0.06) & (v < 0.94)
    picture[frame] = _rgb(0.36, 0.30, 0.25)
    mat = inner & ((np.abs(u - 0.5) > 0.2) | (v < 0.16) | (v > 0.84))
    art = noise.octaves(u * 4 + cell * 13, v * 3 + cell * 7, 2)
    levels = np.floor(art * 7) / 7
    hue = noise.cells(cell, cell * 0 + 29)
    ink = np.stack([0.25 + 0.5 * levels, 0.3 + 0.4 * levels * hue, 0.45 - 0.2 * levels], axis=-1)
    picture[inner] = (0.75 * ink[inner] + 0.1).astype(np.float32) ** 1.6
    picture[mat] = _rgb(0.90, 0.89, 0.85)
    return picture


def _tiles(x: Array, z: Array, noise: Noise) -> Picture:
    i, j = np.floor(x / 0.8), np.floor(z / 0.8)
    tone = 0.86 + 0.2 * noise.cells(i, j) - 0.14 * np.mod(i + j, 2)
    spots = 0.92 + 0.16 * noise.octaves(x * 6, z * 6, 4)
    seam = _seam(x / 0.8, 0.018) | _seam(z / 0.8, 0.018)
    return _tint(_rgb(0.66, 0.68, 0.66), tone * spots * np.where(seam, 0.7, 1.0))


def _bricks(x: Array, y: Array, noise: Noise) -> Picture:
    row = np.floor(y / 0.22)
    along = x / 0.6 + 0.5 * np.mod(row, 2)
    tone = 0.75 + 0.45 * noise.cells(row, np.floor(along))
    rough = 0.88 + 0.24 * noise.octaves(x * 9, y * 9, 3)
    picture = _tint(_rgb(0.66, 0.50, 0.43), tone * rough)
    mortar = _seam(y / 0.22, 0.05) | _seam(along, 0.02)
    picture[mortar] = _tint(_rgb(0.72, 0.69, 0.65), rough)[mortar]
    return picture


def _grass(x: Array, z: Array, noise: Noise) -> Picture:
    patches = noise.octaves(x * 0.5, z * 0.35, 3)
    blades = noise.octaves(x * 11, z * 5, 4)
    picture = _tint(_rgb(0.47, 0.57, 0.31), 0.55 + 0.45 * patches + 0.45 * (blades - 0.4))
    middle = 1.2 * np.sin(z * 0.22 + 1) - 0.5
    edge = 1.5 + 0.35 * (noise.octaves(x, z, 3) - 0.5)
    path = np.clip((edge - np.abs(x - middle)) / 0.15, 0, 1)[..., None].astype(np.float32)
    gravel = _tint(_rgb(0.76, 0.70, 0.59), 0.82 + 0.36 * noise.octaves(x * 9, z * 6, 3))
    return np.asarray(picture * (1 - path) + gravel * path, np.float32)


def _sky(x: Array, y: Array, noise: Noise) -> Picture:
    up = np.clip(y / 16, 0, 1)[..., None].astype(np.float32)
    sky = _rgb(0.84, 0.90, 0.95) * (1 - up) + _rgb(0.48, 0.68, 0.90) * up
    cloud = np.clip((noise.octaves(x * 0.16, y * 0.4, 5) - 0.52) * 3.2, 0, 0.85)[..., None]
    picture = np.asarray(sky * (1 - cloud) + _rgb(0.98, 0.98, 0.98) * cloud, np.float32)
    for depth, (shade, level, wave) in enumerate(((0.66, 4.2, 0.18), (0.50, 2.4, 0.45))):
        crown = level + 2.4 * (noise.octaves(x * wave + 31 * depth, x * 0 + 9 * depth, 5) - 0.5)
        trees = y < crown
        leaves = 0.65 + 0.6 * noise.octaves(x * 1.6 + 11 * depth, y * 1.6, 4)
        green = _tint(_rgb(shade * 0.75, shade, shade * 0.62), leaves)
        picture[trees] = green[trees]
    return picture


_PAINTERS = {
    "studio": (_planks, _studio_wall),
    "playground": (_tiles, _bricks),
    "park": (_grass, _sky),
}


def half_width(spec: SceneSpec, depth: float) -> float:
    """Half of what an unpanned camera sees at a depth, metres."""
    return depth / (2 * spec.camera.focal)


def nearest_ground(spec: SceneSpec) -> float:
    """The depth at which the ground enters an unpanned picture at its lower edge, metres."""
    down = (1 - spec.camera.horizon) * spec.height / (spec.camera.focal * spec.width)
    return spec.camera.height / down if down > 0 else math.inf
