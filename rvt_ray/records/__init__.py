"""What flows through the system. Imports nothing of ours."""

from rvt_ray.records.base import SCHEMA_VERSION, Part, Record
from rvt_ray.records.clip import ClipRecord, clip_id
from rvt_ray.records.enums import (
    BUILD_STAGES,
    Absence,
    AuditWord,
    CameraMotion,
    Category,
    Coverage,
    DepthKind,
    FailureCode,
    FrameFlag,
    Stage,
    Task,
    TrackStatus,
    Verdict,
    VideoFlag,
    Wording,
)
from rvt_ray.records.failure import Failure
from rvt_ray.records.prediction import PREDICTION_SCHEMA
from rvt_ray.records.sample import (
    Box,
    Evidence,
    GateVerdict,
    Reject,
    Sample,
    SampleProvenance,
    Tree,
    TreeEdge,
    TreeNode,
)
from rvt_ray.records.twin import (
    Attribute,
    CameraStep,
    DepthStep,
    DigitalTwin,
    FrameMeasure,
    Instance,
    ModelWeights,
    Provenance,
    Quality,
    Scene,
    Scored,
    Track,
)

TABLES: dict[str, type[Record]] = {
    record.TABLE: record for record in (ClipRecord, DigitalTwin, Sample, Reject, Failure)
}

__all__ = [
    "BUILD_STAGES",
    "PREDICTION_SCHEMA",
    "SCHEMA_VERSION",
    "TABLES",
    "Absence",
    "Attribute",
    "AuditWord",
    "Box",
    "CameraMotion",
    "CameraStep",
    "Category",
    "ClipRecord",
    "Coverage",
    "DepthKind",
    "DepthStep",
    "DigitalTwin",
    "Evidence",
    "Failure",
    "FailureCode",
    "FrameFlag",
    "FrameMeasure",
    "GateVerdict",
    "Instance",
    "ModelWeights",
    "Part",
    "Provenance",
    "Quality",
    "Record",
    "Reject",
    "Sample",
    "SampleProvenance",
    "Scene",
    "Scored",
    "Stage",
    "Task",
    "Track",
    "TrackStatus",
    "Tree",
    "TreeEdge",
    "TreeNode",
    "Verdict",
    "VideoFlag",
    "Wording",
    "clip_id",
]
