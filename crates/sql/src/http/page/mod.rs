//! The page to browse the kinds.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use lariat_http::{page_files, with_files_inside};
use sha2::{Digest, Sha256};

/// The page: one file with its style and script, since a service that is nested does not know its prefix.
static HTML: LazyLock<String> = LazyLock::new(|| {
    let own = page_files!["address.js", "explorer.css", "main.js", "rows.js"];
    with_files_inside(include_str!("index.html"), own)
});

/// The page and its security policy.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) html: Bytes,
    /// The `Content-Security-Policy` of the page.
    ///
    /// It allows the page's own style and script, and requests to this service.
    pub(super) policy: HeaderValue,
}

/// Returns the page.
pub(super) fn page() -> &'static Page {
    static PAGE: LazyLock<Page> = LazyLock::new(|| {
        // The hashes allow the page's own script and style only, so text of an object can never run as a script.
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            source("script"),
            source("style")
        );
        Page {
            html: Bytes::from_static(HTML.as_bytes()),
            policy: HeaderValue::try_from(policy).expect("the policy is ASCII"),
        }
    });
    &PAGE
}

/// Returns the hash of the content of an element, for the policy.
fn source(element: &str) -> String {
    let content = content(element).unwrap_or_default();
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content)))
}

fn content(element: &str) -> Option<&'static str> {
    let (_, rest) = HTML.split_once(&format!("<{element}>"))?;
    let (content, _) = rest.split_once(&format!("</{element}>"))?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use lariat_testing::pages;

    use super::*;

    #[test]
    fn the_page_has_one_style_and_one_script_and_needs_nothing_else() {
        for element in ["style", "script"] {
            assert_eq!(HTML.matches(&format!("<{element}")).count(), 1, "{element}");
            assert!(content(element).is_some_and(|content| content.len() > 100));
        }
        for outside in ["src=", "href=\"http", "url(", "@import", "//cdn"] {
            assert!(!HTML.contains(outside), "{outside}");
        }
    }

    #[test]
    fn nothing_from_objects_becomes_markup_or_script() {
        let script = content("script").unwrap();
        assert_eq!(pages::unsafe_parts(script), [""; 0]);
        assert!(!script.contains("localStorage"));
        // Handlers in markup would not run under the policy.
        assert!(!HTML.contains(" onclick=") && !HTML.contains(" style="));
    }

    #[test]
    fn every_file_is_put_into_the_page() {
        let marks = HTML
            .lines()
            .filter(|line| line.starts_with("/* ") && line.ends_with("s */"));
        assert_eq!(marks.collect::<Vec<_>>(), [""; 0]);
    }
}
