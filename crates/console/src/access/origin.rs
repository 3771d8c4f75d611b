//! The origin of a request: protection against cross-site request forgery.

use http::{HeaderMap, header};

/// Returns whether a request is from the console's own page, or from no browser.
///
/// Browsers send `Origin` with each POST, and that of another site's page differs from the `Host`. The scheme is not
/// compared, because a proxy may terminate TLS.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    // Sent by browsers only, and not changeable by scripts. `none` is an address that the user has typed.
    let is_same_site = matches!(text("sec-fetch-site"), None | Some("same-origin" | "none"));
    let Some(origin) = text(header::ORIGIN.as_str()) else {
        // Browsers send `Origin` with each POST, so this is no browser.
        return is_same_site;
    };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    let host = text(header::HOST.as_str());
    let is_same = |(ours, theirs): (&str, &str)| ours.eq_ignore_ascii_case(theirs);
    is_same_site && authority.zip(host).is_some_and(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], expected: bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        assert_eq!(is_own_page(&map), expected, "{headers:?}");
    }

    #[test]
    fn pages_of_other_origins_are_found() {
        let host = ("host", "localhost:9090");
        check(&[host], true);
        check(&[host, ("origin", "http://localhost:9090")], true);
        check(&[host, ("origin", "https://LOCALHOST:9090")], true);
        check(&[host, ("origin", "http://localhost:9091")], false);
        check(&[host, ("origin", "http://attacker.example")], false);
        check(&[host, ("origin", "null")], false);
        check(&[("origin", "http://localhost:9090")], false);
        check(&[host, ("sec-fetch-site", "same-origin")], true);
        check(&[host, ("sec-fetch-site", "none")], true);
        check(&[host, ("sec-fetch-site", "cross-site")], false);
        check(&[host, ("sec-fetch-site", "same-site")], false);
        let ours = ("origin", "http://localhost:9090");
        check(&[host, ours, ("sec-fetch-site", "cross-site")], false);
    }
}
