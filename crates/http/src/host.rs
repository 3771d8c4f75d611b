//! The `Host` header of requests.

use std::collections::BTreeSet;
use std::net::IpAddr;

use http::{HeaderMap, header, uri::Authority};

/// The names by which clients may address a service that needs no authentication.
///
/// A page of another site can make its own host name resolve to the address of a service (DNS rebinding). Its requests
/// are of the same origin for the browser, and differ from others by their `Host` only. So a service without
/// authentication must refuse names that may be of another site, whatever address it listens on.
///
/// Always allowed are names that no public site can have: IP addresses, `localhost`, names without a dot, and names of
/// Services (`NAME.NAMESPACE.svc` and `NAME.NAMESPACE.svc.cluster.local`). Ports do not matter.
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::HOST};
/// use lariat_http::Hosts;
///
/// let hosts = Hosts::default().with("console.shop.example");
/// let mut headers = HeaderMap::new();
/// headers.insert(HOST, HeaderValue::from_static("localhost:8080"));
/// assert!(hosts.allow(&headers));
/// headers.insert(HOST, HeaderValue::from_static("console.shop.example"));
/// assert!(hosts.allow(&headers));
/// headers.insert(HOST, HeaderValue::from_static("other.example"));
/// assert!(!hosts.allow(&headers));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Hosts(BTreeSet<String>);

impl Hosts {
    /// Allows one more name, such as `console.shop.example`; without a port.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>) -> Self {
        self.0.insert(name.into().to_ascii_lowercase());
        self
    }

    /// Returns whether the `Host` of a request is allowed.
    ///
    /// A missing one is, as browsers always send it.
    #[must_use]
    pub fn allow(&self, headers: &HeaderMap) -> bool {
        let Some(host) = headers.get(header::HOST) else {
            return true;
        };
        let authority = host.to_str().ok();
        let authority = authority.and_then(|host| host.parse::<Authority>().ok());
        authority.is_some_and(|authority| {
            let host = authority.host().trim_matches(['[', ']']);
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            is_private(&host) || self.0.contains(&host)
        })
    }
}

/// Returns whether no public site can have a name.
fn is_private(host: &str) -> bool {
    let is_name = !host.is_empty() && !host.contains('.');
    is_name
        || host.parse::<IpAddr>().is_ok()
        || host.ends_with(".svc")
        || host.ends_with(".svc.cluster.local")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_a_public_site_is_refused_unless_named() {
        let hosts = Hosts::default().with("Console.Shop.example");
        let check = |host: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(header::HOST, host.parse().unwrap());
            }
            hosts.allow(&headers)
        };
        for good in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9090",
            "[::1]:80",
            "10.0.0.1",
            "console",
            "console.shop.svc:8080",
            "console.shop.svc.cluster.local",
            "console.shop.example:443",
            "console.shop.example.",
        ] {
            assert!(check(Some(good)), "{good}");
        }
        for bad in [
            "attacker.example",
            "localhost.attacker.example:80",
            "127.0.0.1.example",
            "svc.example",
            "shop.example",
            "",
            ".",
            "a b",
        ] {
            assert!(!check(Some(bad)), "{bad}");
        }
        assert!(check(None));
    }
}
