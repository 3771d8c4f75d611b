//! HorizontalPodAutoscalers in their two versions.
//!
//! Version 1 keeps what it has no members for in annotations. Source:
//! `k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go`.

mod annotation_json;
mod metrics;
mod versions;

pub(crate) use versions::{in_second, to_first, to_second};
pub(super) use versions::{keep, read};
