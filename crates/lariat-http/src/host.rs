//! The `Host` header of requests.

use std::net::IpAddr;

use http::{HeaderMap, header};

/// Returns whether the `Host` of a request is an IP address or `localhost`.
///
/// A service on a loopback address without authentication must refuse other requests. They come from a web page of
/// another site, whose name was made to resolve to this machine (DNS rebinding).
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::HOST};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(HOST, HeaderValue::from_static("localhost:8080"));
/// assert!(lariat_http::names_this_machine(&headers));
/// headers.insert(HOST, HeaderValue::from_static("example.com"));
/// assert!(!lariat_http::names_this_machine(&headers));
/// ```
#[must_use]
pub fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    let authority = host.and_then(|host| host.parse::<http::uri::Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host().trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_machines_are_not_this_one() {
        let check = |host: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(header::HOST, host.parse().unwrap());
            }
            names_this_machine(&headers)
        };
        for good in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9090",
            "[::1]:80",
            "10.0.0.1",
        ] {
            assert!(check(Some(good)), "{good}");
        }
        for bad in [
            "attacker.example",
            "localhost.attacker.example:80",
            "127.0.0.1.example",
            "",
            "a b",
        ] {
            assert!(!check(Some(bad)), "{bad}");
        }
        assert!(!check(None));
    }
}
