//! The queries of lists and watches.

use std::time::Duration;

use lariat_core::ResourceVersion;

/// How many objects a page of a list has: small beside the store, large beside a request.
const PAGE_SIZE: usize = 500;

/// Asks for the first page, or the one a token names.
pub(super) fn page(continue_token: Option<&str>) -> String {
    match continue_token {
        None => format!("limit={PAGE_SIZE}"),
        Some(token) => format!("limit={PAGE_SIZE}&continue={}", encode(token)),
    }
}

/// Asks for everything at once; not for version 0, which may be older than what was seen already.
pub(super) fn whole() -> &'static str {
    "limit=0"
}

/// Asks for what happened since a version.
pub(super) fn watch(since: &ResourceVersion, timeout: Duration) -> String {
    format!(
        "watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
        encode(&since.to_string()),
        timeout.as_secs()
    )
}

/// Escapes what has a meaning in a query; tokens and versions are base64 and digits as a rule.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(page(Some("a+/=&b")), "limit=500&continue=a%2B%2F%3D%26b");
        let watch = watch(&ResourceVersion::new("42"), Duration::from_secs(300));
        assert!(watch.contains("resourceVersion=42&timeoutSeconds=300"));
    }
}
