//! Reference implementations for targets: the simplest ones, on `serde_json::Value`.

pub(crate) mod object;
pub(crate) mod selector;
