"""Settings: one tree, YAML plus overrides, unknown keys refused, a fingerprint per stage."""

from rvt_ray.config.load import STAGE_VERSION, fingerprint, load_config
from rvt_ray.config.settings import Config

__all__ = ["STAGE_VERSION", "Config", "fingerprint", "load_config"]
