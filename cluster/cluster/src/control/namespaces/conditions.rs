//! The conditions of a terminating namespace.
//!
//! Source: `status_condition_utils.go` in `k8s.io/kubernetes/pkg/controller/namespace/deletion`.

use std::collections::BTreeMap;

use lariat_apimachinery::object::Object;
use serde_json::{Value, json};

use super::contents::Contents;

/// A condition as it should be.
struct Condition {
    kind: &'static str,
    /// The reason and message while something is wrong, `None` otherwise.
    trouble: Option<(&'static str, String)>,
    /// The reason and the message where all is well.
    well: (&'static str, &'static str),
}

/// Brings the conditions in a namespace's status up to date.
pub(super) fn update(namespace: &mut Object, contents: &Contents, now: &str) {
    let status = namespace.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    status["phase"] = "Terminating".into();
    let known = &mut status["conditions"];
    if !known.is_array() {
        *known = json!([]);
    }
    let known = known.as_array_mut().expect("it was just made an array");
    for condition in wanted(contents) {
        set(known, condition, now);
    }
}

fn wanted(contents: &Contents) -> [Condition; 5] {
    let fine = |kind, reason, message| Condition {
        kind,
        trouble: None,
        well: (reason, message),
    };
    [
        // Go discovers the resources by requests, which may fail. This control plane knows them, so three of the
        // conditions are always fine.
        fine(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        fine(
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        Condition {
            kind: "NamespaceContentRemaining",
            trouble: texts(&contents.resources, "has").map(|texts| {
                let message = format!("Some resources are remaining: {texts}");
                ("SomeResourcesRemain", message)
            }),
            well: ("ContentRemoved", "All content successfully removed"),
        },
        Condition {
            kind: "NamespaceFinalizersRemaining",
            trouble: texts(&contents.finalizers, "in").map(|texts| {
                let message =
                    format!("Some content in the namespace has finalizers remaining: {texts}");
                ("SomeFinalizersRemain", message)
            }),
            well: (
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        },
    ]
}

/// Writes `pods. has 2 resource instances, …`, or nothing.
fn texts(counts: &BTreeMap<String, usize>, word: &str) -> Option<String> {
    let text =
        |(name, count): (&String, &usize)| format!("{name} {word} {count} resource instances");
    let texts: Vec<String> = counts.iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Sets a condition; its transition time moves only with its status.
fn set(known: &mut Vec<Value>, condition: Condition, now: &str) {
    let (status, reason, message) = match condition.trouble {
        Some((reason, message)) => ("True", reason, message),
        None => ("False", condition.well.0, condition.well.1.to_owned()),
    };
    let mut next = json!({
        "type": condition.kind, "status": status, "lastTransitionTime": now,
        "reason": reason, "message": message,
    });
    match known.iter_mut().find(|each| each["type"] == condition.kind) {
        None => known.push(next),
        Some(before) => {
            if before["status"] == next["status"] {
                next["lastTransitionTime"] = before["lastTransitionTime"].clone();
            }
            *before = next;
        }
    }
}
