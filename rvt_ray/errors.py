"""The errors that cross room borders.

A `ConfigError` is the user's to mend and ends the command before any work. A `ClipError` condemns one
video or clip: the job records it as a failure row and goes on.
"""

from __future__ import annotations

from rvt_ray.records.enums import FailureCode, Stage


class RvtError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(RvtError):
    """A setting, path or resource is wrong; the message names the field and the remedy."""


class MissingDependencyError(ConfigError):
    """A backend needs a package or weights that are absent; the message says how to get them."""


class ClipError(RvtError):
    """One video or clip cannot be processed. Becomes one row of the failures table.

    Args:
        code: machine-readable reason, one per kind of trouble.
        message: what was seen and what to do about it; names the file.
        stage: where it happened; None lets the stage that catches it fill in its own name.
    """

    def __init__(self, code: FailureCode, message: str, stage: Stage | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.stage = stage

    def __reduce__(self) -> tuple[type[ClipError], tuple[FailureCode, str, Stage | None]]:
        # The default reduction would lose `code`: errors cross process borders here.
        return (type(self), (self.code, self.message, self.stage))
