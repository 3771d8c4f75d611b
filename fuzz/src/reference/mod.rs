//! What targets are compared with: the same thing done in the simplest way, on `serde_json::Value`.

pub(crate) mod object;
pub(crate) mod selector;
