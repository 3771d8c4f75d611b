//! URLs of servers and proxies: which parts are secret.

use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;
use percent_encoding::percent_decode_str;

/// Removes the user and password from a URL, and returns them.
///
/// They precede the last `@` of the authority, since a password may contain one.
pub(crate) fn without_user(url: &str) -> (String, Option<(String, String)>) {
    let start = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[start..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |end| start + end);
    let Some(at) = url[start..end].rfind('@') else {
        return (url.to_owned(), None);
    };
    let (name, password) = {
        let user = &url[start..start + at];
        user.split_once(':').unwrap_or((user, ""))
    };
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let rest = format!("{}{}", &url[..start], &url[start + at + 1..]);
    (rest, Some((decoded(name), decoded(password))))
}

/// Removes the user and password from a URI, and returns them.
pub(crate) fn split_user(uri: Uri) -> (Uri, Option<(String, String)>) {
    let (text, user) = without_user(&uri.to_string());
    match (text.parse(), user) {
        (Ok(stripped), Some(user)) => (stripped, Some(user)),
        _ => (uri, None),
    }
}

/// Adds a port to a URI without one.
pub(crate) fn with_port(uri: Uri, port: u16) -> Uri {
    let (Some(host), None) = (uri.host(), uri.port()) else {
        return uri;
    };
    let mut parts = uri.clone().into_parts();
    parts.authority = format!("{host}:{port}").parse().ok();
    Uri::from_parts(parts).unwrap_or(uri)
}

/// Returns whether credentials may be sent to a server: over TLS, or within this machine.
pub(crate) fn may_have_credentials(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    url.scheme() == Some(&Scheme::HTTPS) || is_loopback || host == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_removed_from_urls() {
        let user = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        for (url, expected, credentials) in [
            ("https://a:1/x@y", "https://a:1/x@y", None),
            ("https://me:pw@a:1", "https://a:1", user("me", "pw")),
            ("https://me@a/b?c=d@e", "https://a/b?c=d@e", user("me", "")),
            ("me:p%40w@a", "a", user("me", "p@w")),
            ("socks5://me:p@w@a", "socks5://a", user("me", "p@w")),
        ] {
            assert_eq!(
                without_user(url),
                (expected.to_owned(), credentials),
                "{url}"
            );
        }
    }

    #[test]
    fn ports_are_added_to_urls_without_one() {
        for (url, expected) in [
            ("socks5://a", "socks5://a:1080/"),
            ("socks5://[::1]", "socks5://[::1]:1080/"),
            ("socks5://a:9", "socks5://a:9/"),
        ] {
            assert_eq!(with_port(url.parse().unwrap(), 1080).to_string(), expected);
        }
    }

    #[test]
    fn credentials_leave_the_machine_over_tls_only() {
        for (url, expected) in [
            ("https://10.0.0.1", true),
            ("http://10.0.0.1", false),
            ("http://127.0.0.1:6443", true),
            ("http://[::1]:6443", true),
            ("http://localhost", true),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(
                may_have_credentials(&url.parse().unwrap()),
                expected,
                "{url}"
            );
        }
    }
}
