//! Query parameters, checked.

use std::collections::HashMap;
use std::time::Duration;

use lariat_apimachinery::cause::StatusCause;
use lariat_core::{FieldSelector, LabelSelector};

use crate::status::ApiError;
use crate::wire::{list_options, number};

/// The parameters of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    /// All values of each name; of most, only the first one counts.
    parameters: HashMap<String, Vec<String>>,
    /// The path makes it a watch, whatever the parameters say.
    is_watch: bool,
    /// The only object of such a watch, if its path names one.
    watched_name: Option<String>,
}

/// The meaning of the version of a read: `resourceVersionMatch`.
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
    /// The only object of a watch, if its path names one.
    pub(crate) name: Option<String>,
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
    /// Parses the parameters; malformed ones are left out.
    ///
    /// Source: `parseQuery` in Go's `net/url`.
    pub(crate) fn parse(query: &str) -> Self {
        let mut parameters: HashMap<String, Vec<String>> = HashMap::new();
        let is_readable = |pair: &&str| !pair.contains(';') && !has_bad_escape(pair);
        for pair in query.split('&').filter(is_readable) {
            for (name, value) in form_urlencoded::parse(pair.as_bytes()) {
                let values = parameters.entry(name.into_owned()).or_default();
                values.push(value.into_owned());
            }
        }
        Self {
            parameters,
            ..Self::default()
        }
    }

    /// Makes this the query of a watch, of one object if it is named.
    pub(crate) fn watch(&mut self, name: Option<&str>) {
        self.is_watch = true;
        self.watched_name = name.map(str::to_owned);
    }

    /// Returns the only object of a watch, if its path names one.
    pub(crate) fn watched_name(&self) -> Option<&str> {
        self.watched_name.as_deref()
    }

    /// Returns whether a parameter is there, with any value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// Returns all values of a parameter.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.parameters.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the first value of a parameter, which may be empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str)
    }

    /// Returns a parameter that is there and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// Reads a flag; a bare name is true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.given(name).map(is_true)
    }

    /// Reads a number, which must not be empty.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let number = self.given(name).map(number::signed).transpose();
        number.map_err(ApiError::bad_request)
    }

    /// Returns whether a collection is to be watched rather than listed.
    pub(crate) fn watches(&self) -> bool {
        self.is_watch || self.asks_to_watch()
    }

    /// Returns whether the parameters make it a watch, by which options are checked.
    pub(crate) fn asks_to_watch(&self) -> bool {
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
        // Less than nothing means the same as nothing.
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
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
            name: self.watched_name.clone(),
            limit: limit.and_then(positive).map(|limit| limit as usize),
            continue_token: self.text("continue").map(str::to_owned),
            version: self.text("resourceVersion").map(str::to_owned),
            version_match: self.version_match(),
            bookmarks: self.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: self.initial_events(),
            timeout: timeout
                .and_then(positive)
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
}

/// Returns whether a part of a query has a percent sign without two digits behind it.
fn has_bad_escape(pair: &str) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    pair.split('%').skip(1).any(|rest| {
        let rest = rest.as_bytes();
        !is_digit(rest.first()) || !is_digit(rest.get(1))
    })
}

/// Reads the value of a flag.
///
/// Source: `Convert_Slice_string_To_bool` in `k8s.io/apimachinery/pkg/runtime`.
fn is_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
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
    fn what_go_cannot_read_is_left_out() {
        let query = Query::parse("a=1;b=2&c=%zz&d=%4&e=%41+b&e=2&f&=x&&g=%");
        for (name, values) in [
            ("a", &[][..]),
            ("c", &[]),
            ("d", &[]),
            ("e", &["A b", "2"]),
            ("f", &[""]),
            ("g", &[]),
        ] {
            assert_eq!(query.all(name), values, "{name}");
        }
        assert!(query.has("f") && !query.has("c"));
    }

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
