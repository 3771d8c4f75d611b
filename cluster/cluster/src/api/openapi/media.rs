//! The media types that operations read and write.

use super::operation::{ApiOperation, Sends, Subject};
use crate::wire::protobuf;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Returns the types of answers, in the order of Go.
pub(super) fn produced(operation: &ApiOperation) -> Vec<&'static str> {
    let mut types = match operation.subject {
        Subject::Version => vec![JSON],
        Subject::Custom => vec![JSON, YAML],
        Subject::BuiltIn | Subject::Discovery => all(),
    };
    if operation.subject == Subject::BuiltIn && is_watched(operation) {
        types.push("application/json;stream=watch");
        if protobuf::IS_BUILT {
            types.push("application/vnd.kubernetes.protobuf;stream=watch");
        }
    }
    types
}

/// Returns the types of bodies of requests, in the order of Go.
pub(super) fn consumed(operation: &ApiOperation) -> Vec<&'static str> {
    match (&operation.sends, operation.subject) {
        (Sends::Patch, Subject::Custom) => vec![JSON_PATCH, MERGE_PATCH, APPLY],
        (Sends::Patch, _) => vec![JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY],
        (_, Subject::BuiltIn) => vec!["*/*"],
        (_, Subject::Custom) => vec![JSON, YAML],
        (_, Subject::Discovery) => all(),
        (_, Subject::Version) => vec![JSON],
    }
}

fn all() -> Vec<&'static str> {
    let mut types = vec![JSON, YAML];
    if protobuf::IS_BUILT {
        types.push(PROTOBUF);
    }
    types
}

/// Returns whether changes may be asked for, by a parameter or by the path.
fn is_watched(operation: &ApiOperation) -> bool {
    let action = operation.about.as_ref().map(|(action, _)| *action);
    matches!(action, Some("list" | "watch" | "watchlist"))
}
