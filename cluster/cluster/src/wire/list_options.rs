//! Refuses parameters of a list or a watch that must not be combined.
//!
//! Source: `ValidateListOptions` in `k8s.io/apimachinery/pkg/apis/meta/internalversion/validation`.

use lariat_apimachinery::cause::StatusCause;

use super::query::Query;

const MATCH: &str = "resourceVersionMatch";

/// Returns all that is wrong, in the order of the real server.
pub(crate) fn causes(query: &Query) -> Vec<StatusCause> {
    if query.asks_to_watch() {
        of_watch(query)
    } else {
        of_list(query)
    }
}

fn of_list(query: &Query) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if let Some(version_match) = query.text(MATCH) {
        if query.text("resourceVersion").is_none() {
            let reason = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            causes.push(StatusCause::forbidden(MATCH, reason));
        }
        causes.extend(with_continue(query));
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            let supported = r#""Exact", "NotOlderThan", """#;
            causes.push(StatusCause::unsupported(MATCH, version_match, supported));
        }
        if version_match == "Exact" && query.text("resourceVersion") == Some("0") {
            let reason = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(StatusCause::forbidden(MATCH, reason));
        }
    }
    if query.initial_events().is_some() {
        let reason = "sendInitialEvents is forbidden for list";
        causes.push(StatusCause::forbidden("sendInitialEvents", reason));
    }
    causes
}

fn of_watch(query: &Query) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let version_match = query.text(MATCH);
    let sends_initial = query.initial_events().is_some();
    if sends_initial && version_match != Some("NotOlderThan") {
        let reason = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        causes.push(StatusCause::forbidden(MATCH, reason));
    }
    let Some(version_match) = version_match else {
        // `SetListOptionsDefaults`: without a version such a watch asks for initial events.
        let version = query.text("resourceVersion");
        if !sends_initial && matches!(version, None | Some("0")) {
            causes.extend(with_continue(query));
        }
        return causes;
    };
    if !sends_initial {
        let reason =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(StatusCause::forbidden(MATCH, reason));
    }
    if version_match != "NotOlderThan" {
        causes.push(StatusCause::unsupported(
            MATCH,
            version_match,
            r#""NotOlderThan""#,
        ));
    }
    causes.extend(with_continue(query));
    causes
}

fn with_continue(query: &Query) -> Option<StatusCause> {
    query.text("continue")?;
    let reason = "resourceVersionMatch is forbidden when continue is provided";
    Some(StatusCause::forbidden(MATCH, reason))
}
