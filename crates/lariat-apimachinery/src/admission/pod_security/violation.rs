//! What is wrong with a Pod.

/// What is wrong with a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    reason: &'static str,
    detail: String,
}

/// What all checks found that count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations(pub(super) Vec<Violation>);

impl Violation {
    pub(super) fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}

impl Violations {
    /// Returns whether the Pod is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns what is wrong in general, which is the same for many Pods.
    #[must_use]
    pub fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|each| each.reason).collect();
        reasons.join(", ")
    }

    /// Returns what is wrong with this Pod.
    #[must_use]
    pub fn details(&self) -> String {
        let all = self.0.iter();
        let all: Vec<String> = all
            .map(|each| format!("{} ({})", each.reason, each.detail))
            .collect();
        all.join(", ")
    }
}
