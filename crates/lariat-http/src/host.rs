//! The `Host` of a request.

use std::net::IpAddr;

use http::{HeaderMap, header};

/// Returns whether a request names this machine by an address or as `localhost`.
///
/// A service on a loopback address that everyone may use has to refuse other requests: they come from a page of another
/// site whose name is resolved to this machine (DNS rebinding).
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
