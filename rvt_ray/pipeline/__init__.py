"""The Ray room: graphs, resources, preflight, ledger, finalise, validate, progress. The only place that
imports ray.

Nothing is imported here: `rvt-ray --help` and `rvt-ray validate` must not pay for Ray.
"""
