//! The query parameters of lists and watches.

use std::fmt::Write;
use std::time::Duration;

use lariat_core::ResourceVersion;

use crate::selection::Selection;

/// The number of objects in a page: little memory beside the store, few requests.
const PAGE_SIZE: usize = 500;

/// The number after a page was too large.
const SMALL_PAGE_SIZE: usize = 50;

/// Creates queries for one selection of objects.
#[derive(Debug)]
pub(super) struct Queries {
    page_size: usize,
    /// The encoded selectors, each preceded by an ampersand.
    selectors: String,
}

impl Queries {
    pub(super) fn new(selection: &Selection) -> Self {
        let labels = parameter("labelSelector", &selection.labels().to_string());
        Self {
            page_size: PAGE_SIZE,
            selectors: labels + &parameter("fieldSelector", &selection.fields().to_string()),
        }
    }

    /// Lets later lists have smaller pages.
    pub(super) fn shrink_pages(&mut self) {
        self.page_size = SMALL_PAGE_SIZE;
    }

    /// Returns the query of the first page, or of the page after a token.
    pub(super) fn page(&self, continue_token: Option<&str>) -> String {
        // Without a version the list is consistent, so never older than what was read before.
        let mut query = format!("limit={}{}", self.page_size, self.selectors);
        if let Some(token) = continue_token {
            query.push_str(&format!("&continue={}", encode(token)));
        }
        query
    }

    /// Returns the query of a list in one piece.
    ///
    /// It is not at version 0, which any cache of the server may answer, with a state older than what was read already.
    pub(super) fn whole(&self) -> String {
        format!("limit=0{}", self.selectors)
    }

    /// Returns the query for any object, whose answer has the server's version.
    pub(super) fn one(&self) -> String {
        format!("limit=1{}", self.selectors)
    }

    /// Returns the query of a watch from a version.
    pub(super) fn watch(&self, since: &ResourceVersion, timeout: Duration) -> String {
        format!(
            "watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}{}",
            encode(&since.to_string()),
            timeout.as_secs(),
            self.selectors
        )
    }

    /// Returns the query of a watch list: all objects, then changes.
    pub(super) fn stream(&self, timeout: Duration) -> String {
        format!(
            "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersion=\
             &resourceVersionMatch=NotOlderThan&timeoutSeconds={}{}",
            timeout.as_secs(),
            self.selectors
        )
    }
}

/// Encodes a parameter, preceded by an ampersand; an empty one is omitted.
fn parameter(name: &str, value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    format!("&{name}={}", encode(value))
}

/// Percent-encodes a text for a query.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped() {
        let queries = Queries::new(&Selection::all());
        assert_eq!(
            queries.page(Some("a+/=&b")),
            "limit=500&continue=a%2B%2F%3D%26b"
        );
        let watch = queries.watch(&ResourceVersion::new("42"), Duration::from_secs(300));
        assert!(watch.contains("resourceVersion=42&timeoutSeconds=300"));
    }

    #[test]
    fn selectors_are_in_every_query() {
        let selection = Selection::all()
            .with_labels("app in (a,b)".parse().unwrap())
            .with_fields("metadata.name!=x".parse().unwrap());
        let queries = Queries::new(&selection);
        let expected = "&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%21%3Dx";
        let minute = Duration::from_secs(60);
        for query in [
            queries.page(None),
            queries.page(Some("t")),
            queries.whole(),
            queries.one(),
            queries.watch(&5.into(), minute),
            queries.stream(minute),
        ] {
            assert!(query.contains(expected), "{query}");
        }
    }
}
