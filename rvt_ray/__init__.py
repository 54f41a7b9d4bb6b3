"""rvt-ray: raw video in, reasoning visual tasks with proven truth out."""

__version__ = "0.1.0"
