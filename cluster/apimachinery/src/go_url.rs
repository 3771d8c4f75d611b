//! URLs as Go reads them.
//!
//! Source: `net/url`.

use crate::go_text::quoted;

/// The parts of a URL that are looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) scheme: String,
    /// Name and password, if there are any.
    pub(crate) user: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) query: &'a str,
    pub(crate) fragment: &'a str,
}

/// Reads a URL.
///
/// # Errors
///
/// Go's sentence about what is wrong with it.
// `url.Parse`.
pub(crate) fn parse(text: &str) -> Result<Url<'_>, String> {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let failed = |text: &str, error: String| format!("parse {}: {error}", quoted(text));
    let url = parts(before, false).map_err(|error| failed(before, error))?;
    check_escapes(fragment).map_err(|error| failed(text, error))?;
    Ok(Url { fragment, ..url })
}

/// Returns whether a text is a request URI: a whole URL, or a path.
// `url.ParseRequestURI`.
pub(crate) fn is_request_uri(text: &str) -> bool {
    !text.is_empty() && parts(text, true).is_ok()
}

fn parts(text: &str, via_request: bool) -> Result<Url<'_>, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text == "*" {
        return Ok(Url::default());
    }
    let (scheme, rest) = split_scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_lowercase(),
        query,
        ..Url::default()
    };
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            // What follows the scheme is opaque.
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_host = !scheme.is_empty() || (!via_request && !rest.starts_with("///"));
    let path = match rest.strip_prefix("//").filter(|_| may_have_host) {
        None => rest,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            check_host(host)?;
            user.map_or(Ok(()), check_user)?;
            (url.user, url.host) = (user, host);
            path
        }
    };
    check_escapes(path)?;
    Ok(url)
}

// `getScheme`.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

// `validUserinfo`.
fn check_user(user: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if user.bytes().all(fits) {
        check_escapes(user)
    } else {
        Err("net/url: invalid userinfo".to_owned())
    }
}

// `parseHost`.
fn check_host(host: &str) -> Result<(), String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    let digits = port.strip_prefix(':');
    let is_port = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !port.is_empty() && !is_port {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    for (at, byte) in host.bytes().enumerate() {
        let is_known = byte.is_ascii_alphanumeric()
            || !byte.is_ascii()
            || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte);
        if byte == b'%' {
            let escape = escape_at(host, at)?;
            // Only what is not ASCII may be escaped in a host, and the percent sign.
            if escape != "%25" && escape.as_bytes()[1] < b'8' {
                return Err(format!("invalid URL escape {}", quoted(escape)));
            }
        } else if !is_known {
            let character = quoted(&host[at..=at]);
            return Err(format!("invalid character {character} in host name"));
        }
    }
    Ok(())
}

fn check_escapes(text: &str) -> Result<(), String> {
    let mut signs = text.match_indices('%');
    signs.try_for_each(|(at, _)| escape_at(text, at).map(drop))
}

/// Returns the escaped byte at a percent sign.
fn escape_at(text: &str, at: usize) -> Result<&str, String> {
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
    let digits = text.as_bytes().get(at + 1..at + 3);
    if digits.is_some_and(|digits| digits.iter().all(is_hex)) {
        return Ok(&text[at..at + 3]);
    }
    let shown: String = text[at..].chars().take(3).collect();
    Err(format!("invalid URL escape {}", quoted(&shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_refused_as_by_go() {
        for (text, error) in [
            (
                "https://[::1",
                r#"parse "https://[::1": missing ']' in host"#,
            ),
            (
                "https://a:b",
                r#"parse "https://a:b": invalid port ":b" after host"#,
            ),
            ("%", r#"parse "%": invalid URL escape "%""#),
            (
                "https://a b/",
                r#"parse "https://a b/": invalid character " " in host name"#,
            ),
            (
                "https://a/%zz",
                r#"parse "https://a/%zz": invalid URL escape "%zz""#,
            ),
            (
                "1:a",
                r#"parse "1:a": first path segment in URL cannot contain colon"#,
            ),
            (
                "ht tp://a",
                r#"parse "ht tp://a": first path segment in URL cannot contain colon"#,
            ),
            (":a", r#"parse ":a": missing protocol scheme"#),
        ] {
            assert_eq!(parse(text), Err(error.to_owned()), "{text}");
        }
        let url = parse("HTTPS://a:b@c.d:1/e?f#g");
        let expected = Url {
            scheme: "https".to_owned(),
            user: Some("a:b"),
            host: "c.d:1",
            query: "f",
            fragment: "g",
        };
        assert_eq!(url, Ok(expected));
    }

    #[test]
    fn requests_ask_for_urls_and_paths() {
        for text in [
            "http:",
            "http:a",
            "/",
            "//a",
            "/a b",
            "*",
            "mailto:a@b",
            "/ä",
            "http://a",
        ] {
            assert!(is_request_uri(text), "{text}");
        }
        for text in [
            "",
            "a",
            "?a",
            "http://[::1",
            "http://a:b",
            "/%zz",
            "http://a/%zz",
            ":a",
            "1:b",
        ] {
            assert!(!is_request_uri(text), "{text}");
        }
    }
}
