//! Entity tags, which show whether a client already has an answer.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};

use crate::access::Access;
use crate::query::Query;
use crate::revision::{Position, Revision};

/// A hash of the query and of what the user may see.
///
/// The answer depends on these and on the state of the kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question(u64);

impl Question {
    /// Returns the hash, unless the answer depends on more than one kind.
    pub(super) fn new(query: &Query, access: &Access) -> Option<Self> {
        if query.asks_other_kinds() {
            return None;
        }
        // Its algorithm may change with the standard library; tags of an earlier process do not match then.
        let mut hasher = DefaultHasher::new();
        query.to_url().hash(&mut hasher);
        hash_access(access, &mut hasher);
        Some(Self(hasher.finish()))
    }

    /// Returns the tag of the answer at a revision of this process.
    ///
    /// It contains the number of the last change and not the resource version, which also grows when the kind has not
    /// changed.
    pub(super) fn tag(self, revision: Revision) -> Option<HeaderValue> {
        let Position { history, change } = revision.place()?;
        let tag = format!("W/\"{history:08x}-{change}-{:016x}\"", self.0);
        HeaderValue::try_from(tag).ok()
    }
}

/// Hashes the namespaces and names of an access.
fn hash_access(access: &Access, hasher: &mut DefaultHasher) {
    access.is_everything().hash(hasher);
    let namespaces: Vec<&str> = access.namespaces().collect();
    namespaces.hash(hasher);
    for (namespace, names) in access.names() {
        namespace.hash(hasher);
        names.collect::<Vec<_>>().hash(hasher);
    }
}

/// Returns the tag of a content that does not change.
pub(super) fn of_content(content: &[u8]) -> HeaderValue {
    let tag = HeaderValue::try_from(format!("\"{}\"", hex(&Sha256::digest(content))));
    tag.expect("hexadecimal digits are fine in a header")
}

/// Returns the first bytes of a hash.
fn hex(hash: &[u8]) -> String {
    let bytes = hash.iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a client has the answer with this tag.
pub(super) fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    // A weak comparison, as for any `If-None-Match`.
    let strip = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let Ok(tag) = tag.to_str().map(strip) else {
        return false;
    };
    let values = headers.get_all(header::IF_NONE_MATCH);
    let mut known = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    known.any(|known| known.trim() == "*" || strip(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(query: &str, access: &Access, revision: &str) -> Option<HeaderValue> {
        let query = Query::from_url(query).unwrap();
        Question::new(&query, access)?.tag(revision.parse().unwrap())
    }

    #[test]
    fn a_tag_stands_for_one_state_question_and_view() {
        let (all, some) = (Access::everything(), Access::of_namespaces(["a"]));
        let first = tag("search=a", &all, "7-0000002a-3");
        assert!(first.is_some());
        // The version increases without changes.
        assert_eq!(tag("search=a", &all, "9-0000002a-3"), first);
        for other in [
            tag("search=b", &all, "7-0000002a-3"),
            tag("search=a", &some, "7-0000002a-3"),
            tag("search=a", &all, "7-0000002b-3"),
            tag("search=a", &all, "7-0000002a-4"),
        ] {
            assert!(other.is_some() && other != first);
        }
        // Without a place it is not known which state that is.
        assert_eq!(tag("search=a", &all, "7"), None);
        let by_label = "projectsornamespaces=a";
        assert_eq!(tag(by_label, &all, "7-0000002a-3"), None);
    }

    #[test]
    fn tags_of_a_client_are_compared_weakly() {
        let tag = HeaderValue::from_static("W/\"a\"");
        let is_known_as = |known: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
            is_known(&headers, &tag)
        };
        for known in ["W/\"a\"", "\"a\"", "*", "\"b\", W/\"a\""] {
            assert!(is_known_as(known), "{known}");
        }
        for other in ["\"b\"", "a", ""] {
            assert!(!is_known_as(other), "{other}");
        }
        assert!(!is_known(&HeaderMap::new(), &tag));
    }
}
