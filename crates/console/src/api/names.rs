//! The names of a kind in discovery.

use serde::{Deserialize, Serialize};

use super::KindRef;

/// The names by which kubectl knows a kind that has a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KindNames {
    /// The kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The plural, singular and short names, in lower case.
    pub names: Vec<String>,
}
