//! The syntax of names.

/// The syntax of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NameRule {
    /// DNS subdomain (RFC 1123), up to 253 characters.
    #[default]
    Subdomain,
    /// DNS label (RFC 1123), up to 63 characters.
    Label,
    /// Anything that can be a path segment.
    PathSegment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
    or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Checks the syntax of a name.
///
/// # Errors
///
/// The server's text about what is wrong.
///
/// # Examples
///
/// ```
/// use lariat_apimachinery::names::{NameRule, check};
///
/// assert!(check("web.shop", NameRule::Subdomain).is_ok());
/// assert!(check("web.shop", NameRule::Label).is_err());
/// assert_eq!(check("..", NameRule::PathSegment), Err("may not be '.' or '..'"));
/// ```
pub fn check(name: &str, rule: NameRule) -> Result<(), &'static str> {
    match rule {
        NameRule::PathSegment if matches!(name, "." | "..") => Err("may not be '.' or '..'"),
        NameRule::PathSegment if name.contains(['/', '%']) => Err("may not contain '/' or '%'"),
        NameRule::PathSegment => Ok(()),
        NameRule::Label if is_label(name) => Ok(()),
        NameRule::Label if name.len() > 63 => Err("must be no more than 63 characters"),
        NameRule::Label => Err(LABEL),
        NameRule::Subdomain if name.len() > 253 => Err("must be no more than 253 characters"),
        NameRule::Subdomain if name.split('.').all(is_subdomain_part) => Ok(()),
        NameRule::Subdomain => Err(SUBDOMAIN),
    }
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_subdomain_part(text)
}

fn is_subdomain_part(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

const MOST: usize = 63;

const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Checks a DNS label (RFC 1035), the syntax of most names in a CRD.
///
/// Source: `k8s.io/apimachinery/pkg/util/validation.IsDNS1035Label`.
///
/// # Errors
///
/// The server's texts about what is wrong, separated by commas.
///
/// # Examples
///
/// ```
/// use lariat_apimachinery::names::check_dns_1035;
///
/// assert!(check_dns_1035("widgets").is_ok());
/// assert!(check_dns_1035("0widgets").is_err());
/// ```
pub fn check_dns_1035(text: &str) -> Result<(), String> {
    let mut rules = Vec::new();
    if text.len() > MOST {
        // `IsDNS1035Label` reports the length and the form, even if both are wrong.
        rules.push(format!("must be no more than {MOST} characters"));
    }
    let bytes = text.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-');
    if !fits {
        rules.push(DNS_1035.to_owned());
    }
    if rules.is_empty() {
        Ok(())
    } else {
        Err(rules.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_the_rule_of_their_kind() {
        use NameRule::{Label, PathSegment, Subdomain};
        for (name, rule, valid) in [
            ("web-0", Subdomain, true),
            ("a.b", Subdomain, true),
            ("Bad_Name", Subdomain, false),
            ("a..b", Subdomain, false),
            ("-a", Subdomain, false),
            ("", Subdomain, false),
            ("a.b", Label, false),
            ("system:node", PathSegment, true),
            ("a/b", PathSegment, false),
        ] {
            assert_eq!(check(name, rule).is_ok(), valid, "{name}");
        }
    }
}
