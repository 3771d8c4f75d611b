//! Query parameters, checked.

use std::collections::HashMap;
use std::time::Duration;

use lariat_apimachinery::cause::StatusCause;
use lariat_core::{FieldSelector, LabelSelector};

use crate::status::ApiError;
use crate::wire::list_options;

/// The parameters of a request, the first of each name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    parameters: HashMap<String, String>,
}

/// How the version of a read is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// The parameters of a list or a watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListQuery {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: Option<String>,
    /// As text, because what a malformed one answers differs between list and watch.
    pub(crate) version: Option<String>,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    /// `None` if the server chooses, as for 0.
    pub(crate) timeout: Option<Duration>,
}

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let mut parameters = HashMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            parameters
                .entry(name.into_owned())
                .or_insert_with(|| value.into_owned());
        }
        Self { parameters }
    }

    /// Makes this the query of a watch, of one object if it is named.
    pub(crate) fn watch(&mut self, name: Option<&str>) {
        self.parameters.insert("watch".into(), "true".into());
        if let Some(name) = name {
            let selector = self.parameters.entry("fieldSelector".into()).or_default();
            if !selector.is_empty() {
                selector.push(',');
            }
            selector.push_str(&format!("metadata.name={name}"));
        }
    }

    /// Returns whether a parameter is there, whatever its value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// Returns a parameter that is there and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.parameters
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Reads a flag; a bare name is true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.parameters.get(name).map(|value| is_true(value))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number: i128 = text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        })?;
        // Less than nothing means the same as nothing.
        Ok(Some(u64::try_from(number.max(0)).unwrap_or(u64::MAX)))
    }

    /// Returns whether a collection is to be watched rather than listed.
    pub(crate) fn watches(&self) -> bool {
        self.flag("watch").unwrap_or(false)
    }

    /// Returns whether a watch asks to begin with the present state, if it says so.
    pub(crate) fn initial_events(&self) -> Option<bool> {
        self.flag("sendInitialEvents")
    }

    pub(crate) fn list(&self) -> Result<ListQuery, ApiError> {
        let selector_error =
            |error: lariat_core::SelectorError| ApiError::bad_request(error.to_string());
        // Numbers are read first, and only then what texts mean.
        let (timeout, limit) = (self.number("timeoutSeconds")?, self.number("limit")?);
        let query = ListQuery {
            labels: self
                .text("labelSelector")
                .unwrap_or_default()
                .parse()
                .map_err(selector_error)?,
            fields: self
                .text("fieldSelector")
                .unwrap_or_default()
                .parse()
                .map_err(selector_error)?,
            limit: limit.filter(|limit| *limit > 0).map(|limit| limit as usize),
            continue_token: self.text("continue").map(str::to_owned),
            version: self.text("resourceVersion").map(str::to_owned),
            version_match: self.version_match(),
            bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: self.initial_events(),
            timeout: timeout
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds).min(LONGEST_TIMEOUT)),
        };
        let causes = list_options::causes(self);
        if causes.is_empty() {
            Ok(query)
        } else {
            Err(list_options(&causes))
        }
    }

    /// Returns how the version is matched, whose value was checked before.
    fn version_match(&self) -> Option<VersionMatch> {
        match self.text("resourceVersionMatch")? {
            "Exact" => Some(VersionMatch::Exact),
            _ => Some(VersionMatch::NotOlderThan),
        }
    }

    /// Returns whether the write is only to be checked.
    pub(crate) fn dry_run(&self, options: &str) -> Result<bool, ApiError> {
        match self.text("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(bad_dry_run(options, other)),
        }
    }

    /// Checks the parameters that every write has.
    pub(crate) fn check_write(&self, options: &str, patches: bool) -> Result<(), ApiError> {
        if let Some(validation) = self.text("fieldValidation")
            && !matches!(validation, "Ignore" | "Warn" | "Strict")
        {
            let supported = r#""", "Ignore", "Strict", "Warn""#;
            let cause = StatusCause::unsupported("fieldValidation", validation, supported);
            return Err(ApiError::invalid_options(options, cause));
        }
        if patches && self.flag("force").is_some() {
            let cause = StatusCause::forbidden("force", "may not be specified for non-apply patch");
            return Err(ApiError::invalid_options(options, cause));
        }
        Ok(())
    }
}

/// Reads the value of a flag.
///
/// Source: `Convert_Slice_string_To_bool` in `k8s.io/apimachinery/pkg/runtime`.
pub(crate) fn is_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

pub(crate) fn bad_dry_run(options: &str, value: &str) -> ApiError {
    let message = format!("Unsupported value: [{value:?}]: supported values: \"All\"");
    let cause = StatusCause::new("FieldValueNotSupported", "dryRun", message);
    ApiError::invalid_options(options, cause)
}

/// The answer of a server that knows no initial events.
pub(crate) fn initial_events_unknown() -> ApiError {
    let reason =
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    list_options(&[StatusCause::forbidden("sendInitialEvents", reason)])
}

fn list_options(causes: &[StatusCause]) -> ApiError {
    ApiError::invalid_as("ListOptions", "meta.k8s.io", "", causes)
}

/// A year: longer than any connection lives, and no clock overflows by it.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_false_for_0_and_false_alone() {
        for (query, expected) in [
            ("", None),
            ("watch", Some(true)),
            ("watch=", Some(true)),
            ("watch=1", Some(true)),
            ("watch=f", Some(true)),
            ("watch=F", Some(true)),
            ("watch=no", Some(true)),
            ("watch=00", Some(true)),
            ("watch=0", Some(false)),
            ("watch=False", Some(false)),
            ("watch=fAlSe", Some(false)),
        ] {
            assert_eq!(Query::parse(query).flag("watch"), expected, "{query}");
        }
    }
}
