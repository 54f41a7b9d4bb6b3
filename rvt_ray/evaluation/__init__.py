"""Scoring predictions against a corpus: metrics, baselines, reports."""
