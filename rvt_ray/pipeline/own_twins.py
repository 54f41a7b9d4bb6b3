"""Twins that the agent perceives itself: from pixels alone, kept by content and settings."""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.parquet as pq

from rvt_ray.config import Config, fingerprint
from rvt_ray.pipeline.storage import Storage
from rvt_ray.records import ClipRecord, DigitalTwin, Stage
from rvt_ray.twin.build import Perception
from rvt_ray.video import open_clip

logger = logging.getLogger(__name__)

FOLDER = "twins"


class OwnTwins:
    """Perceives clips, and remembers.

    A twin is kept as `<storage>/twins/<fingerprint of the perceive settings>/<clip
    id>[.<annotation>].parquet`;
    a clip id is derived from the video's content, so a changed video or setting never meets an old twin.

    Args:
        config: `index` and `perceive` are used.
        storage: where twins are kept.
        annotations: whether annotations that come with a clip may be used. Never for an evaluation: they are
            what the truth was made from.
    """

    def __init__(self, config: Config, storage: Storage, *, annotations: bool) -> None:
        self._config = config
        self._storage = storage
        self._annotations = annotations
        self._folder = f"{FOLDER}/{fingerprint(config, Stage.CAPTION)}"
        self._perception: Perception | None = None

    def twin(self, clip: ClipRecord) -> DigitalTwin:
        """The twin of a clip.

        Raises:
            ClipError: it cannot be decoded or perceived.
            ConfigError: a backend cannot be built.
        """
        if not self._annotations:
            clip = clip.model_copy(
                update={"annotation_uri": None, "annotation_format": None, "annotation_sha256": None}
            )
        mark = f".{clip.annotation_sha256[:12]}" if clip.annotation_sha256 else ""
        name = f"{self._folder}/{clip.clip_id}{mark}.parquet"
        if self._storage.exists(name):
            table = pq.read_table(pa.BufferReader(self._storage.read(name)), schema=DigitalTwin.SCHEMA)
            return DigitalTwin.from_table(table)[0]
        if self._perception is None:
            self._perception = Perception.from_config(self._config)
        logger.info("perceiving %s (%d frames)", clip.name, clip.num_frames)
        frames = open_clip(clip, self._config.index)
        try:
            twin = self._perception.twin(clip, frames)
        finally:
            frames.close()
        sink = pa.BufferOutputStream()
        pq.write_table(DigitalTwin.to_table([twin]), sink, compression="zstd")
        self._storage.write(name, bytes(sink.getvalue()))
        return twin
