//! Query parameters, checked.

use std::collections::HashMap;
use std::time::Duration;

use lariat_core::{FieldSelector, LabelSelector};

use super::status::{ApiError, Cause};

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
    pub(crate) watch: bool,
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

    /// Reads a flag as Go's `strconv.ParseBool` does; a bare name is true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.parameters.get(name)?;
        Some(!matches!(
            value.as_str(),
            "0" | "f" | "F" | "false" | "False" | "FALSE"
        ))
    }

    fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: invalid syntax"
            ))
        })?;
        Ok(Some(number))
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
            limit: self
                .number("limit")?
                .filter(|limit| *limit > 0)
                .map(|limit| limit as usize),
            continue_token: self.text("continue").map(str::to_owned),
            version: self.text("resourceVersion").map(str::to_owned),
            version_match: self.version_match()?,
            watch: self.watches(),
            bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: self.initial_events(),
            timeout: self
                .number("timeoutSeconds")?
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds).min(LONGEST_TIMEOUT)),
        };
        query.check()?;
        Ok(query)
    }

    fn version_match(&self) -> Result<Option<VersionMatch>, ApiError> {
        match self.text("resourceVersionMatch") {
            None => Ok(None),
            Some("Exact") => Ok(Some(VersionMatch::Exact)),
            Some("NotOlderThan") => Ok(Some(VersionMatch::NotOlderThan)),
            Some(other) => Err(list_options(Cause::unsupported(
                "resourceVersionMatch",
                other,
                r#""Exact", "NotOlderThan""#,
            ))),
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
            let supported = r#""Ignore", "Strict", "Warn""#;
            let cause = Cause::unsupported("fieldValidation", validation, supported);
            return Err(ApiError::invalid_options(options, cause));
        }
        if patches && self.flag("force").is_some() {
            let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
            return Err(ApiError::invalid_options(options, cause));
        }
        Ok(())
    }
}

pub(crate) fn bad_dry_run(options: &str, value: &str) -> ApiError {
    ApiError::invalid_options(options, Cause::unsupported("dryRun", value, r#""All""#))
}

/// The answer of a server that knows no initial events.
pub(crate) fn initial_events_unknown() -> ApiError {
    let why =
        "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    list_options(Cause::forbidden("sendInitialEvents", why))
}

fn list_options(cause: Cause) -> ApiError {
    ApiError::invalid_options("ListOptions", cause)
}

/// A year: longer than any connection lives, and no clock overflows by it.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl ListQuery {
    /// Checks what must not be combined.
    ///
    /// Source: `ValidateListOptions` in `k8s.io/apimachinery/pkg/apis/meta/internalversion/validation`.
    fn check(&self) -> Result<(), ApiError> {
        let forbidden = |field: &str, why: &str| Err(list_options(Cause::forbidden(field, why)));
        if self.initial_events.is_some() {
            if !self.watch {
                let why = "sendInitialEvents is forbidden for list";
                return forbidden("sendInitialEvents", why);
            }
            if self.version_match != Some(VersionMatch::NotOlderThan) {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return forbidden("resourceVersionMatch", why);
            }
            return Ok(());
        }
        let Some(version_match) = self.version_match else {
            return Ok(());
        };
        if self.watch {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                provided";
            return forbidden("resourceVersionMatch", why);
        }
        if self.version.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            return forbidden("resourceVersionMatch", why);
        }
        if self.continue_token.is_some() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            return forbidden("resourceVersionMatch", why);
        }
        if version_match == VersionMatch::Exact && self.version.as_deref() == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            return forbidden("resourceVersionMatch", why);
        }
        Ok(())
    }
}
