//! Violations by a Pod, and the sentences about them.

use serde_json::Value;

use super::pod::Pod;

/// A violation: the reason and the detail of one failed check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    reason: &'static str,
    detail: String,
}

/// The violations that all checks found.
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

    /// Returns the reasons of all violations, which are the same for many Pods.
    #[must_use]
    pub fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|each| each.reason).collect();
        reasons.join(", ")
    }

    /// Returns the details about this Pod of all violations.
    #[must_use]
    pub fn details(&self) -> String {
        let all = self.0.iter();
        let all: Vec<String> = all
            .map(|each| format!("{} ({})", each.reason, each.detail))
            .collect();
        all.join(", ")
    }
}

/// Quotes names, without escapes.
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return String::new();
    }
    format!("\"{}\"", names.join("\", \""))
}

/// Returns the word for one thing, or for another number of them.
pub(super) fn plural(one: &'static str, many: &'static str, count: usize) -> &'static str {
    if count == 1 { one } else { many }
}

/// Lists containers: `container "a"`.
pub(super) fn containers(names: &[&str]) -> String {
    let word = plural("container", "containers", names.len());
    format!("{word} {}", quoted(names.iter().copied()))
}

/// Lists the Pod, containers, or both; `None` if there is none.
pub(super) fn setters(by_pod: bool, names: &[&str]) -> Option<String> {
    match (by_pod, names) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(containers(names)),
        (true, names) => Some(format!("pod and {}", containers(names))),
    }
}

/// Lists the Pod and the containers whose security context is wrong.
pub(super) fn wrong_setters(pod: Pod<'_>, is_wrong: impl Fn(&Value) -> bool) -> Option<String> {
    let names = pod.named(|container| is_wrong(container.security()));
    setters(is_wrong(pod.security()), &names)
}
