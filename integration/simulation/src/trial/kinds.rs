//! The kinds of the trial.

use lariat_core::Gvk;

/// The plurals of the kinds.
pub(crate) const PLURALS: [&str; 3] = ["configmaps", "secrets", "widgets"];

/// The kinds of the trial, in the order of the simulation's list.
pub(crate) fn kinds() -> [Gvk; 3] {
    [
        Gvk::new("", "v1", "ConfigMap"),
        Gvk::new("", "v1", "Secret"),
        Gvk::new("sim.dev", "v1", "Widget"),
    ]
}
