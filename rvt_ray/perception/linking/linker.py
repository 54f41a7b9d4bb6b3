"""The linker of a clip: proposals of key frames and propagated masks in, tracks out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rvt_ray.masks import rle
from rvt_ray.perception.base import TrackDraft
from rvt_ray.perception.linking.judge import Judge
from rvt_ray.perception.linking.keyframe import Found, KeyFrame
from rvt_ray.perception.linking.memory import TrackMemory
from rvt_ray.perception.linking.settings import LinkSettings
from rvt_ray.perception.proposals import KeyFrameDecision, Proposal, Sight


class TrackLinker:
    """Links the masks of a clip, which is a shot; see `rvt_ray.perception.proposals.Linker`, docs/linking.md.

    A new mask becomes a track at once, so that it can be followed, but is a candidate until it was found
    again: candidates that do not stay are dropped at the end. A track that is lost is remembered by its
    motion, size and colours, and takes up its id when it is back.

    Args:
        height, width, num_frames: of the clip.
        settings: thresholds.
    """

    def __init__(
        self,
        height: int,
        width: int,
        num_frames: int,
        settings: LinkSettings | None = None,
    ) -> None:
        self.height, self.width, self.num_frames = height, width, num_frames
        self.settings = settings or LinkSettings()
        self._memories: dict[int, TrackMemory] = {}

    def observe(self, frame: int, seen: Mapping[int, Sight]) -> None:
        """See `Linker`."""
        for i, sight in seen.items():
            self._memories[i].see(frame, sight.rle, self.height, self.width)

    def key_frame(
        self, frame: int, proposals: Sequence[Proposal], seen: Mapping[int, Sight]
    ) -> KeyFrameDecision:
        """See `Linker`."""
        decision = KeyFrameDecision()
        known = {i: m for i, m in self._memories.items() if not m.ended}
        now = KeyFrame(frame, proposals, known, seen, self.settings, (self.height, self.width))
        now.find_lumps()
        now.match_same()
        now.join_pieces()
        now.accept_matches()
        now.share_lumps()
        now.grow_candidates()
        now.find_lost()
        for i, found in now.found.items():
            self._take(frame, i, found, now, seen, decision)
        for i in now.gone:
            known[i].ended = known[i].dissolved = True
        for i, memory in known.items():
            self._count(i, memory, now, seen)
        following = sum(not self._memories[i].ended for i in seen) if seen else len(known)
        owner = {id(f.proposal): i for i, f in now.found.items()}
        for column in now.new()[: max(0, self.settings.max_objects - following)]:
            number = len(self._memories) + 1
            proposal = proposals[column]
            self._memories[number] = TrackMemory.of(proposal, self.height, self.width)
            decision.born[number] = proposal
            owner[id(proposal)] = number
        for number, proposal in decision.born.items():
            if proposal.parent is not None:
                self._memories[number].parent = owner.get(id(proposals[proposal.parent]))
        decision.ended.extend(i for i, m in known.items() if m.ended)
        return decision

    def finish(self, tracks: Mapping[int, Mapping[int, Sight]]) -> list[TrackDraft]:
        """See `Linker`."""
        judge = Judge(self._memories, self.settings, self.height, self.width, self.num_frames)
        return judge.drafts(tracks)

    def _take(
        self,
        frame: int,
        i: int,
        found: Found,
        now: KeyFrame,
        seen: Mapping[int, Sight],
        decision: KeyFrameDecision,
    ) -> None:
        memory, proposal = self._memories[i], found.proposal
        decision.found[i] = proposal
        if found.again:
            memory.recognise(proposal)
            memory.found += 1
        if i not in seen:  # nobody propagates it: its place is what was found
            memory.see(frame, proposal.rle, self.height, self.width)
            return
        low, high = self.settings.drifted
        if found.back or not now.is_expected(i):
            decision.corrected[i] = proposal
            memory.see(frame, proposal.rle, self.height, self.width)
        elif self.settings.correct and found.again:
            iou = rle.iou(seen[i].rle, proposal.rle, self.height, self.width)
            if low <= iou < high:
                decision.corrected[i] = proposal

    def _count(self, i: int, memory: TrackMemory, now: KeyFrame, seen: Mapping[int, Sight]) -> None:
        """What this look says of a track: found, hidden among others, missed, or given up."""
        if i not in now.lumped:
            memory.grouped = 0
        if i in now.found:
            memory.missed = 0
            memory.looked += now.found[i].again
            return
        if i in now.lumped:
            return
        if now.is_expected(i):
            memory.missed = 0
            memory.looked += 1
            return
        if i not in seen and memory.missed < self.settings.recent_looks:
            memory.looked += 1
        memory.missed += 1
        if memory.is_candidate and memory.missed >= self.settings.candidate_looks:
            memory.ended = True
