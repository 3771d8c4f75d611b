//! Actions of users.

use serde::{Deserialize, Serialize};

use super::{GuardRef, KindRef};

/// An action. It is refused unless actions are enabled and the user is authorised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    tag = "action",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Action {
    /// Enqueue a key, for one handler or for all.
    Enqueue {
        /// The kind.
        #[serde(flatten)]
        kind: KindRef,
        /// The key, as `namespace/name`.
        key: String,
        /// The handler; all if it is missing.
        handler: Option<String>,
    },
    /// Pause a handler; its keys wait.
    Pause {
        /// The kind.
        #[serde(flatten)]
        kind: KindRef,
        /// The handler.
        handler: String,
    },
    /// Resume a paused handler.
    Resume {
        /// The kind.
        #[serde(flatten)]
        kind: KindRef,
        /// The handler.
        handler: String,
    },
    /// List all objects of a kind again.
    Relist {
        /// The kind.
        #[serde(flatten)]
        kind: KindRef,
    },
    /// Reset a guard.
    ResetGuard {
        /// The guard, as the overview names it.
        #[serde(flatten)]
        guard: GuardRef,
    },
    /// Change the log filter.
    LogFilter {
        /// The filter, such as `info,lariat_cache=debug`.
        filter: String,
    },
}

/// The response to an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The effect, as a sentence.
    pub message: String,
}
