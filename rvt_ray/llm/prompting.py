"""Prompts: versioned files, one per task and step, filled with words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from rvt_ray.llm.base import Message

_SECTION = re.compile(r"^# (system|user)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Prompt:
    """A prompt file: `version: N`, then a `# system` and a `# user` part with `{slots}`."""

    name: str
    version: str
    system: str
    user: str

    @property
    def id(self) -> str:
        """As it stands in the rows: `wording_vqa@1`."""
        return f"{self.name}@{self.version}"

    def messages(self, **slots: object) -> tuple[Message, ...]:
        """The filled prompt.

        Raises:
            KeyError: a slot of the file is not given.
        """
        return (Message("system", self.system), Message("user", self.user.format(**slots)))


@cache
def load_prompt(name: str, package: str) -> Prompt:
    """Read `prompts/<name>.md` of a room.

    Raises:
        ValueError: the file lacks its version or a section.
    """
    text = files(package).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
    head, *parts = _SECTION.split(text)
    version = re.search(r"^version: (\S+)", head, re.MULTILINE)
    sections = {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}
    if version is None or set(sections) != {"system", "user"}:
        raise ValueError(f"prompt {name!r} needs a version line, a '# system' and a '# user' section")
    return Prompt(name, version.group(1), sections["system"], sections["user"])
