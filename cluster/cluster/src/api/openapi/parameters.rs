//! The query parameters of operations.

pub(super) const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
pub(super) const DELETE: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
pub(super) const LIST: [&str; 9] = [
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
];
pub(super) const WATCH: [&str; 2] = ["allowWatchBookmarks", "watch"];

/// Returns the types of parameters in the query; all others are texts.
pub(super) fn type_of(parameter: &str) -> &'static str {
    match parameter {
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        "allowWatchBookmarks"
        | "force"
        | "ignoreStoreReadErrorWithClusterBreakingPotential"
        | "orphanDependents"
        | "sendInitialEvents"
        | "watch" => "boolean",
        _ => "string",
    }
}

/// Returns all parameters an operation may have in the query.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    let groups = [&WRITE[..], &["force"], &DELETE[1..], &LIST, &WATCH].into_iter();
    groups.flatten().copied()
}
