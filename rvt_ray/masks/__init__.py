"""Masks: run-length codec, geometry, matching, cleaning. Pure functions over numpy and strings."""
