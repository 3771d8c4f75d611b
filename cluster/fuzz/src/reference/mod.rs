//! What targets are compared with: the same thing done in the simplest way, on `serde_json::Value`.

pub(crate) mod json_patch;
pub(crate) mod merge_patch;
