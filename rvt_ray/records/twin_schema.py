"""The Arrow schema of the twins table; `rvt_ray.records.twin` says what its columns mean."""

from __future__ import annotations

import pyarrow as pa

from rvt_ray.records.base import schema

_F = pa.list_(pa.float64())
_TRACK_NUMBERS = (
    "box_x",
    "box_y",
    "box_w",
    "box_h",
    "area",
    "centroid_x",
    "centroid_y",
    "velocity_x",
    "velocity_y",
    "score",
    "depth_median",
    "depth_mean",
    "depth_std",
    "depth_p10",
    "depth_p90",
    "depth_min",
    "depth_max",
)

TWIN_SCHEMA: pa.Schema = schema(
    ("clip_id", pa.string()),
    ("width", pa.int32()),
    ("height", pa.int32()),
    ("num_frames", pa.int32()),
    ("pts_s", _F),
    ("depth_kind", pa.string()),
    (
        "scene",
        pa.struct(
            [
                ("caption", pa.string()),
                ("tags", pa.list_(pa.string())),
                ("camera_motion", pa.string()),
                (
                    "camera",
                    pa.list_(
                        pa.struct(
                            [
                                ("dx", pa.float64()),
                                ("dy", pa.float64()),
                                ("zoom", pa.float64()),
                                ("roll", pa.float64()),
                                ("known", pa.bool_()),
                            ]
                        )
                    ),
                ),
            ]
        ),
    ),
    ("key_frames", pa.list_(pa.int32())),
    (
        "instances",
        pa.list_(
            pa.struct(
                [
                    ("instance_id", pa.int32()),
                    ("category", pa.string()),
                    (
                        "alternatives",
                        pa.list_(
                            pa.struct(
                                [
                                    ("value", pa.string()),
                                    ("score", pa.float64()),
                                    ("source", pa.string()),
                                ]
                            )
                        ),
                    ),
                    (
                        "attributes",
                        pa.list_(
                            pa.struct(
                                [
                                    ("name", pa.string()),
                                    ("value", pa.string()),
                                    ("score", pa.float64()),
                                    ("source", pa.string()),
                                ]
                            )
                        ),
                    ),
                    ("caption", pa.string()),
                    ("parent_id", pa.int32()),
                    (
                        "quality",
                        pa.struct(
                            [
                                ("mean_score", pa.float64()),
                                ("redetection_rate", pa.float64()),
                                ("fragments", pa.int32()),
                                ("status", pa.string()),
                            ]
                        ),
                    ),
                    (
                        "track",
                        pa.struct(
                            [
                                ("frame_idx", pa.list_(pa.int32())),
                                ("visible", pa.list_(pa.bool_())),
                                ("absence", pa.list_(pa.string())),
                                ("rle", pa.list_(pa.large_string())),
                                *((name, _F) for name in _TRACK_NUMBERS),
                            ]
                        ),
                    ),
                ]
            )
        ),
    ),
    (
        "provenance",
        pa.struct([(n, pa.string()) for n in ("segment", "depth", "caption", "settings", "versions")]),
    ),
    (
        "depth_alignment",
        pa.list_(
            pa.struct(
                [
                    ("frame_idx", pa.int32()),
                    *((name, pa.float64()) for name in ("scale", "shift", "residual")),
                ]
            )
        ),
    ),
    (
        "frame_measures",
        pa.list_(
            pa.struct(
                [
                    *((name, pa.float64()) for name in ("brightness", "sharpness", "change")),
                    ("flags", pa.list_(pa.string())),
                ]
            )
        ),
    ),
    ("flags", pa.list_(pa.string())),
    ("weights", pa.list_(pa.struct([(name, pa.string()) for name in ("part", "model", "license")]))),
    ("coverage", pa.string()),
)
