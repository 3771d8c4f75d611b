//! The proxy that the environment names for a server.
//!
//! The rules are those of Go's `http.ProxyFromEnvironment` (`golang.org/x/net/http/httpproxy`), which kubectl follows.

use std::net::IpAddr;

use http::Uri;

/// The variables of the environment that name proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxyVariables {
    http: String,
    https: String,
    none: String,
}

impl ProxyVariables {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, or their names in lower case.
    pub(crate) fn from_env() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// Reads the variables by a function.
    fn new(get: impl Fn(&str) -> Option<String>) -> Self {
        let any = |name: &str| {
            let names = [name.to_owned(), name.to_lowercase()];
            let mut set = names.iter().filter_map(|name| get(name));
            set.find(|value| !value.is_empty()).unwrap_or_default()
        };
        Self {
            http: any("HTTP_PROXY"),
            https: any("HTTPS_PROXY"),
            none: any("NO_PROXY"),
        }
    }

    /// Returns the proxy for a server, if there is one.
    ///
    /// A variable that is not a URL counts as missing.
    pub(crate) fn proxy_of(&self, server: &Uri) -> Option<Uri> {
        let (proxy, port) = match server.scheme_str()? {
            "https" => (&self.https, 443),
            "http" => (&self.http, 80),
            _ => return None,
        };
        let host = server.host()?.trim_matches(['[', ']']).to_lowercase();
        let port = server.port_u16().unwrap_or(port);
        if proxy.is_empty() || is_loopback(&host) || self.excludes(&host, port) {
            return None;
        }
        parse(proxy)
    }

    /// Returns whether `NO_PROXY` excludes a server.
    fn excludes(&self, host: &str, port: u16) -> bool {
        let mut entries = self.none.split(',').map(str::trim);
        entries.any(|entry| matches(&entry.to_lowercase(), host, port))
    }
}

/// Returns whether a proxy has a scheme that can be used.
pub(crate) fn is_supported(proxy: &Uri) -> bool {
    matches!(proxy.scheme_str(), Some("http" | "https" | "socks5"))
}

/// Parses the address of a proxy; `http` is its scheme if there is none.
fn parse(proxy: &str) -> Option<Uri> {
    if proxy.contains("://") {
        // An unknown scheme is kept, so that the error can name it.
        return proxy.parse().ok();
    }
    format!("http://{proxy}").parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| canonical(address).is_loopback())
}

/// Returns whether an entry of `NO_PROXY` matches a server.
fn matches(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let address = host.parse().ok().map(canonical);
    if let Some((network, bits)) = network(entry) {
        return address.is_some_and(|address| is_within(address, network, bits));
    }
    let (name, wanted) = split_port(entry);
    let wanted = wanted.filter(|wanted| !wanted.is_empty());
    if wanted.is_some_and(|wanted| wanted.parse() != Ok(port)) {
        return false;
    }
    if let Ok(single) = name.parse::<IpAddr>() {
        return address == Some(canonical(single));
    }
    // An address is in no domain, even if it ends like one.
    address.is_none() && is_domain(name, host)
}

/// Returns whether a host is in a domain; a domain that begins with a dot has subdomains only.
fn is_domain(domain: &str, host: &str) -> bool {
    let domain = match domain.strip_prefix('*') {
        Some(rest) if rest.starts_with('.') => rest,
        _ => domain,
    };
    match domain.strip_prefix('.') {
        _ if domain.is_empty() => false,
        Some(_) => host.ends_with(domain),
        None => {
            host == domain
                || host
                    .strip_suffix(domain)
                    .is_some_and(|rest| rest.ends_with('.'))
        }
    }
}

/// Splits a port from a host, an IPv4 address or an IPv6 address in brackets.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    if let Some((host, port)) = entry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
    {
        return (host, Some(port));
    }
    match entry.split_once(':') {
        // An IPv6 address has several colons.
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (entry, None),
    }
}

/// Parses a network in CIDR notation.
fn network(entry: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = entry.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits: u32 = bits.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (bits <= most).then_some((address, bits))
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    // Shifting by all bits overflows; no bits have to be the same then.
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let difference = address.to_bits() ^ network.to_bits();
            difference.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let difference = address.to_bits() ^ network.to_bits();
            difference.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Returns an IPv4 address that is written as an IPv6 address as what it is.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: &[(&str, &str)], server: &str, expected: Option<&str>) {
        let variables = ProxyVariables::new(|name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        let proxy = variables.proxy_of(&server.parse().unwrap());
        let expected = expected.map(|proxy| proxy.parse::<Uri>().unwrap());
        assert_eq!(proxy, expected, "{set:?} {server}");
    }

    #[test]
    fn proxies_are_chosen_by_scheme_of_the_server() {
        let both = [("HTTP_PROXY", "plain.tld"), ("HTTPS_PROXY", "secure.tld")];
        check(&both, "http://a.tld", Some("http://plain.tld"));
        check(&both, "https://a.tld", Some("http://secure.tld"));
        check(&both[..1], "https://a.tld", None);
        check(&both[1..], "http://a.tld", None);
        check(&both, "ftp://a.tld", None);
        check(&[], "https://a.tld", None);
        check(
            &[("https_proxy", "lower.tld:3128")],
            "https://a.tld",
            Some("http://lower.tld:3128"),
        );
        check(
            &[("HTTPS_PROXY", ""), ("https_proxy", "lower.tld")],
            "https://a.tld",
            Some("http://lower.tld"),
        );
    }

    #[test]
    fn proxies_without_scheme_are_http() {
        for (value, expected) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            (
                "cache.corp.example.com:1234",
                "http://cache.corp.example.com:1234",
            ),
            ("cache.corp.example.com", "http://cache.corp.example.com"),
            ("localhost", "http://localhost"),
            (
                "https://cache.corp.example.com",
                "https://cache.corp.example.com",
            ),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("socks5://127.0.0.1", "socks5://127.0.0.1"),
            ("foo://host", "foo://host"),
        ] {
            check(
                &[("HTTP_PROXY", value)],
                "http://example.com",
                Some(expected),
            );
        }
    }

    #[test]
    fn loopback_has_no_proxy() {
        let all = [("HTTP_PROXY", "proxy"), ("HTTPS_PROXY", "proxy")];
        for host in [
            "localhost",
            "127.0.0.1",
            "127.0.0.2",
            "[::1]",
            "LOCALHOST",
            "[::ffff:127.0.0.1]",
        ] {
            check(&all, &format!("https://{host}:6443"), None);
            check(&all, &format!("http://{host}"), None);
        }
        for host in ["[::2]", "localhost.net", "local.localhost", "128.0.0.1"] {
            check(&all, &format!("https://{host}:6443"), Some("http://proxy"));
        }
    }

    #[test]
    fn no_proxy_excludes_hosts_domains_networks_and_ports() {
        let none = "foobar.com, .barbaz.net, *.wildcard.io, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, 10.0.0.0/30, \
                    2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64, ported.com:80";
        for (host, has_proxy) in [
            ("192.168.1.1", false),
            ("192.168.1.2", true),
            ("192.168.1.3", false),
            ("192.168.1.4", true),
            ("10.0.0.2", false),
            ("10.0.0.4", true),
            ("[2001:db8::52:0:1]", false),
            ("[2001:db8::52:0:2]", true),
            ("[2001:db8::52:0:3]", false),
            ("[2002:db8:a::123]", false),
            ("[fe80::424b:c8be:1643:a1b6]", true),
            ("barbaz.net", true),
            ("www.barbaz.net", false),
            ("foobar.com", false),
            ("www.foobar.com", false),
            ("WWW.FooBar.com", false),
            ("foofoobar.com", true),
            ("baz.com", true),
            ("barbarbaz.net", true),
            ("wildcard.io", true),
            ("nested.wildcard.io", false),
            ("awildcard.io", true),
            ("ported.com", false),
            ("a.ported.com", false),
        ] {
            let expected = has_proxy.then_some("http://proxy");
            for name in ["NO_PROXY", "no_proxy"] {
                let set = [("HTTP_PROXY", "proxy"), (name, none)];
                check(&set, &format!("http://{host}:80"), expected);
                check(&set, &format!("http://{host}"), expected);
            }
            check(
                &[("HTTP_PROXY", "proxy"), ("NO_PROXY", "*")],
                &format!("http://{host}"),
                None,
            );
        }
        let set = [
            ("HTTPS_PROXY", "proxy"),
            ("NO_PROXY", "a.com:443,b.com:6443"),
        ];
        check(&set, "https://a.com", None);
        check(&set, "https://a.com:6443", Some("http://proxy"));
        check(&set, "https://b.com:6443", None);
    }

    #[test]
    fn entries_without_host_exclude_nothing() {
        for none in [":1", "", ",,", "10.0.0.0/33", "/", ".", "*.", "a:b:c"] {
            let set = [("HTTP_PROXY", "proxy"), ("NO_PROXY", none)];
            check(&set, "http://example.com", Some("http://proxy"));
        }
        let set = [("HTTP_PROXY", "proxy"), ("NO_PROXY", ".0.0.1,0.1")];
        check(&set, "http://10.0.0.1", Some("http://proxy"));
        check(
            &[("HTTP_PROXY", "proxy"), ("NO_PROXY", "0.0.0.0/0")],
            "http://1.2.3.4",
            None,
        );
        check(
            &[("HTTP_PROXY", "proxy"), ("NO_PROXY", "example.com")],
            "http://[1000::1]:123",
            Some("http://proxy"),
        );
    }
}
