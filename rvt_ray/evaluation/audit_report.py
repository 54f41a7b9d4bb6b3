"""What people thought of audited samples: error rates with intervals by stratum, and how far raters agree."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rvt_ray.errors import ConfigError
from rvt_ray.records import AuditWord, Task

CORRECT, DISPUTED = "correct", "disputed"
_Z = 1.959963984540054  # 95 %


class AuditVerdict(BaseModel):
    """One line of an exported file: what one rater said of one sample."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    audit: str
    sample_id: str
    clip_id: str
    task: Task
    level: int = Field(ge=1, le=4)
    rater: str = Field(min_length=1)
    verdict: AuditWord
    note: str = ""
    saw_truth: bool = False


@dataclass(frozen=True)
class Rate:
    """Share of samples with a fault; `low`, `high` are Wilson's 95 % interval."""

    faults: int
    samples: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """0..1; NaN without samples."""
        return self.faults / self.samples if self.samples else math.nan


@dataclass(frozen=True)
class AuditReport:
    """A report over all verdicts.

    Attributes:
        strata: name ("all", "vqa", "L2", "vqa/L2") -> rate of samples that are not `correct`.
        wrong: the same for `wrong` alone.
        verdicts: decided verdict -> samples; `disputed` where raters tie.
        raters: rater -> verdicts given.
        agreement: share of pairs of raters that agree, over samples with at least two; NaN without such.
        kappa: Cohen's for two raters, Fleiss' for more, over the samples that all of them judged; NaN where
            there are none, or only one verdict was ever given.
        common: samples that all raters judged.
        disputes: sample id -> rater -> verdict, where they differ.
    """

    strata: dict[str, Rate]
    wrong: dict[str, Rate]
    verdicts: dict[str, int]
    raters: dict[str, int]
    agreement: float
    kappa: float
    common: int
    disputes: dict[str, dict[str, str]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; NaN becomes null."""

        def rates(found: Mapping[str, Rate]) -> dict[str, Any]:
            return {
                name: {**rate.__dict__, "share": rate.share if rate.samples else None}
                for name, rate in found.items()
            }

        return {
            "not_correct": rates(self.strata),
            "wrong": rates(self.wrong),
            "verdicts": self.verdicts,
            "raters": self.raters,
            "agreement": None if math.isnan(self.agreement) else self.agreement,
            "kappa": None if math.isnan(self.kappa) else self.kappa,
            "common": self.common,
            "disputes": self.disputes,
        }


def read_verdicts(paths: Sequence[Path]) -> list[AuditVerdict]:
    """Read exported files. A rater who judged a sample twice is counted once, by the last line.

    Raises:
        ConfigError: a file cannot be read, or a line is no verdict; names file, line and field.
    """
    found: dict[tuple[str, str], AuditVerdict] = {}
    audits: dict[str, Path] = {}
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path}: cannot be read: {error}. Export verdicts on the audit page"
            ) from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                verdict = AuditVerdict.model_validate(json.loads(line))
            except json.JSONDecodeError as error:
                raise ConfigError(f"{path}, line {number}: not JSON: {error}") from error
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(map(str, first["loc"])) or "line"
                raise ConfigError(f"{path}, line {number}: {field}: {first['msg']}") from error
            audits.setdefault(verdict.audit, path)
            found[verdict.rater, verdict.sample_id] = verdict
    if not found:
        raise ConfigError(f"{', '.join(map(str, paths)) or 'no file'}: no verdicts in there")
    if len(audits) > 1:
        some = ", ".join(f"{key} ({path})" for key, path in audits.items())
        raise ConfigError(f"verdicts of different draws cannot be put together: {some}")
    return list(found.values())


def audit_report(verdicts: Sequence[AuditVerdict]) -> AuditReport:
    """Rates by stratum and agreement of raters.

    Each sample counts once, by the verdict of most of its raters. Where they tie it is `disputed`, which
    counts as a fault and, if one of them said so, as wrong: an audit should not flatter.
    """
    by_sample: dict[str, list[AuditVerdict]] = defaultdict(list)
    for verdict in verdicts:
        by_sample[verdict.sample_id].append(verdict)
    faults: dict[str, list[bool]] = defaultdict(list)
    wrongs: dict[str, list[bool]] = defaultdict(list)
    decided: Counter[str] = Counter()
    for given in by_sample.values():
        names = _winners(v.verdict for v in given)
        name = names[0] if len(names) == 1 else DISPUTED
        decided[name] += 1
        first = given[0]
        for stratum in ("all", str(first.task), f"L{first.level}", f"{first.task}/L{first.level}"):
            faults[stratum].append(name != CORRECT)
            wrongs[stratum].append("wrong" in names)
    raters = Counter(v.rater for v in verdicts)
    tables: list[Counter[str]] = [
        Counter(v.verdict for v in given) for given in by_sample.values() if len(given) >= 2
    ]
    common = [given for given in by_sample.values() if len(given) == len(raters)]
    return AuditReport(
        strata=_rates(faults),
        wrong=_rates(wrongs),
        verdicts=dict(sorted(decided.items())),
        raters=dict(sorted(raters.items())),
        agreement=_mean([_pairs_agreeing(t) for t in tables]),
        kappa=_kappa(common, sorted(raters)),
        common=len(common) if len(raters) > 1 else 0,
        disputes={
            sample_id: {v.rater: v.verdict for v in sorted(given, key=lambda v: v.rater)}
            for sample_id, given in sorted(by_sample.items())
            if len({v.verdict for v in given}) > 1
        },
    )


def wilson(faults: int, samples: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share (E. B. Wilson, JASA 1927); (0, 1) without samples."""
    if samples == 0:
        return 0.0, 1.0
    p, z2 = faults / samples, _Z**2
    middle = (p + z2 / (2 * samples)) / (1 + z2 / samples)
    half = _Z / (1 + z2 / samples) * math.sqrt(p * (1 - p) / samples + z2 / (4 * samples**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def cohen(pairs: Sequence[tuple[str, str]]) -> float:
    """Cohen's kappa of two raters; NaN where chance alone would agree always."""
    n = len(pairs)
    if n == 0:
        return math.nan
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / n
    chance = sum(first[name] * second[name] for name in first) / n**2
    return math.nan if chance == 1 else (observed - chance) / (1 - chance)


def fleiss(tables: Sequence[Mapping[str, int]]) -> float:
    """Fleiss' kappa; every table counts the verdicts of equally many raters on one sample."""
    if not tables:
        return math.nan
    raters = sum(tables[0].values())
    total: Counter[str] = Counter()
    for table in tables:
        total.update(table)
    observed = _mean([_pairs_agreeing(table) for table in tables])
    chance = sum((count / (raters * len(tables))) ** 2 for count in total.values())
    return math.nan if chance == 1 else (observed - chance) / (1 - chance)


def to_text(report: AuditReport) -> str:
    """The report as lines for a terminal."""
    lines = [f"{'stratum':<18} {'samples':>7} {'not correct':>22} {'wrong':>22}"]
    for name, rate in report.strata.items():
        lines.append(f"{name:<18} {rate.samples:>7} {_shown(rate):>22} {_shown(report.wrong[name]):>22}")
    lines.append("verdicts: " + ", ".join(f"{name} {n}" for name, n in report.verdicts.items()))
    lines.append("raters: " + ", ".join(f"{name} {n}" for name, n in report.raters.items()))
    if len(report.raters) > 1:
        kind = "Cohen" if len(report.raters) == 2 else "Fleiss"
        lines.append(
            f"agreement {_number(report.agreement)}, {kind}'s kappa {_number(report.kappa)} "
            f"over {report.common} samples that all judged; {len(report.disputes)} disputes"
        )
    return "\n".join(lines)


def _shown(rate: Rate) -> str:
    return f"{100 * rate.share:.1f} % [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"


def _winners(names: Iterable[str]) -> list[str]:
    counts = Counter(names)
    most = max(counts.values())
    return sorted(name for name, n in counts.items() if n == most)


def _rates(found: Mapping[str, Sequence[bool]]) -> dict[str, Rate]:
    def place(name: str) -> tuple[int, str]:
        return (0 if name == "all" else 1 + name.count("/") + ("/" in name), name)

    return {
        name: Rate(sum(found[name]), len(found[name]), *wilson(sum(found[name]), len(found[name])))
        for name in sorted(found, key=place)
    }


def _pairs_agreeing(table: Mapping[str, int]) -> float:
    n = sum(table.values())
    return sum(count * (count - 1) for count in table.values()) / (n * (n - 1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _kappa(common: Sequence[Sequence[AuditVerdict]], raters: Sequence[str]) -> float:
    if len(raters) < 2:
        return math.nan
    if len(raters) == 2:
        said = [{v.rater: v.verdict for v in given} for given in common]
        return cohen([(s[raters[0]], s[raters[1]]) for s in said])
    return fleiss([Counter(v.verdict for v in given) for given in common])
