//! Reference implementations for targets: the simplest ones, on `serde_json::Value`.

pub(crate) mod json_patch;
pub(crate) mod merge_patch;
