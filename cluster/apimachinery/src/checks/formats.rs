//! The forms of texts: names, labels, keys.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation`, and `content` in `k8s.io/apimachinery/pkg/api/validate`.

/// Returns a beginning of a name as if it were a name: it may end in a dash.
pub(crate) fn masked(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            // `maskTrailingDash`: the last character and the dash become one letter, so the length counts one less
            // than that of the prefix.
            kept.pop();
            kept + "a"
        }
        _ => prefix.to_owned(),
    }
}

/// Checks a text, and returns one message for each broken rule.
pub(crate) type Format = fn(&str) -> Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Returns the message of a broken rule: the demand, examples, the expression.
pub(crate) fn regex_message(rule: &str, examples: &[&str], expression: &str) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{expression}')");
    }
    let examples: Vec<String> = examples.iter().map(|each| format!("'{each}', ")).collect();
    let examples = examples.join(" or ");
    format!("{rule} (e.g. {examples}regex used for validation is '{expression}')")
}

// Go's older rules say characters and its newer ones bytes; both count bytes.
fn too_long(text: &str, most: usize, unit: &str) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} {unit}"))
}

fn is_edge(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Returns whether a text is a part of a DNS name, of any length.
fn is_dns_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| is_edge(*byte))
        && bytes.last().is_some_and(|byte| is_edge(*byte))
        && bytes.iter().all(|byte| is_edge(*byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_part)
}

/// A DNS label of RFC 1123: at most 63 of `[a-z0-9-]`.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 63, "characters").into_iter().collect();
    if is_dns_part(text) {
        return broken;
    }
    broken.push(if is_subdomain(text) {
        // A hint in place of the expression, which would not say what is wrong.
        "must not contain dots".into()
    } else {
        let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
            or '-', and must start and end with an alphanumeric character";
        regex_message(rule, &["my-name", "123-abc"], LABEL)
    });
    broken
}

/// DNS labels of RFC 1123 with dots between them, at most 253 bytes.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

/// The same in the words of declarative validation.
pub(crate) fn long_name(text: &str) -> Vec<String> {
    subdomain(text, "bytes")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 253, unit).into_iter().collect();
    if !is_subdomain(text) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
            characters, '-' or '.', and must start and end with an alphanumeric character";
        broken.push(regex_message(rule, &["example.com"], SUBDOMAIN));
    }
    broken
}

/// A DNS label of RFC 1035, which starts with a letter.
pub(crate) fn dns_1035_label(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 63, "characters").into_iter().collect();
    if !is_dns_part(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
            start with an alphabetic character, and end with an alphanumeric character";
        let expression = "[a-z]([-a-z0-9]*[a-z0-9])?";
        broken.push(regex_message(rule, &["my-name", "abc-123"], expression));
    }
    broken
}

/// A DNS subdomain behind `*.`.
pub(crate) fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 253, "characters").into_iter().collect();
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        let rule = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
            subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
            end with an alphanumeric character";
        let expression = format!("\\*\\.{SUBDOMAIN}");
        broken.push(regex_message(rule, &["*.example.com"], &expression));
    }
    broken
}

/// A DNS subdomain whose parts may have underscores.
pub(crate) fn underscored_subdomain(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 253, "characters").into_iter().collect();
    let fits = |part: &str| {
        // `IsDNS1123SubdomainWithUnderscore`: one underscore may begin a part, as in names of SRV records.
        let rest = part.strip_prefix('_').unwrap_or(part);
        is_dns_part(&rest.replace('_', "-")) && !rest.starts_with('_') && !rest.ends_with('_')
    };
    if !text.split('.').all(fits) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
            characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        let part = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        let expression = format!("{part}(\\.{part})*");
        broken.push(regex_message(rule, &["example.com"], &expression));
    }
    broken
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(inner)
}

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character";
const NAME_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

/// The key of a label: a name, perhaps behind a DNS subdomain and a slash.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        // `content.IsLabelKey` looks at nothing else of a text with several slashes.
        Some((_, name)) if name.contains('/') => {
            let rule = regex_message(NAME_RULE, &NAME_EXAMPLES, QUALIFIED);
            let rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {rest}")];
        }
        Some(("", name)) => {
            broken.push("prefix part must be non-empty".into());
            name
        }
        Some((prefix, name)) => {
            let rules = dns_subdomain(prefix).into_iter();
            let rules = rules.map(|rule| rule.replace("253 characters", "253 bytes"));
            broken.extend(rules.map(|rule| format!("prefix part {rule}")));
            name
        }
    };
    if name.is_empty() {
        broken.push("name part must be non-empty".into());
    } else {
        let rule = too_long(name, 63, "bytes");
        broken.extend(rule.map(|rule| format!("name part {rule}")));
    }
    // An empty name breaks this rule as well, so it has two messages.
    if !is_name_part(name) {
        let rule = regex_message(NAME_RULE, &NAME_EXAMPLES, QUALIFIED);
        broken.push(format!("name part {rule}"));
    }
    broken
}

/// The key of an annotation: as [`qualified_name`], but case does not matter.
pub(crate) fn annotation_key(text: &str) -> Vec<String> {
    // `ValidateAnnotations` lowers the key, so that a prefix may have capital letters.
    qualified_name(&text.to_lowercase())
}

/// The value of a label, which may be empty.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 63, "bytes").into_iter().collect();
    if !text.is_empty() && !is_name_part(text) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, \
            '-', '_' or '.', and must start and end with an alphanumeric character";
        let expression = format!("({QUALIFIED})?");
        broken.push(regex_message(
            rule,
            &["MyValue", "my_value", "12345"],
            &expression,
        ));
    }
    broken
}

/// A segment of a path.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// The beginning of a segment of a path.
pub(crate) fn path_segment_prefix(text: &str) -> Vec<String> {
    // These would change the meaning of a URL.
    let found = ["/", "%"].into_iter().filter(|part| text.contains(part));
    found
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// The name of a port: at most 15 of `[a-z0-9-]`, with a letter.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 15, "characters").into_iter().collect();
    let mut rule = |is_broken: bool, message: &str| {
        if is_broken {
            broken.push(message.to_owned());
        }
    };
    let fits = !text.is_empty() && text.bytes().all(|byte| is_edge(byte) || byte == b'-');
    rule(
        !fits,
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    rule(
        !text.bytes().any(|byte| byte.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    );
    // The rules of RFC 6335 for service names, all of which are reported.
    rule(text.contains("--"), "must not contain consecutive hyphens");
    rule(
        text.starts_with('-') || text.ends_with('-'),
        "must not begin or end with a hyphen",
    );
    broken
}

/// The name of an HTTP header.
pub(crate) fn header_name(text: &str) -> Vec<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !text.is_empty() && text.bytes().all(inner) {
        return Vec::new();
    }
    let rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![regex_message(rule, &["X-Header-Name"], "[-A-Za-z0-9]+")]
}

/// The name of an environment variable: anything printable but `=`.
pub(crate) fn env_name(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    let fits = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=';
    if text.bytes().all(fits) {
        return Vec::new();
    }
    let rule = "a valid environment variable name must consist only of printable ASCII characters \
        other than '='";
    vec![rule.into()]
}

/// A key of a ConfigMap or a Secret.
pub(crate) fn config_key(text: &str) -> Vec<String> {
    let mut broken: Vec<String> = too_long(text, 253, "characters").into_iter().collect();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty() || !text.bytes().all(inner) {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        let examples = ["key.name", "KEY_NAME", "key-name"];
        broken.push(regex_message(rule, &examples, "[-._a-zA-Z0-9]+"));
    }
    match text {
        "." | ".." => broken.push(format!("must not be '{text}'")),
        // Names of this form are used by the kubelet in volumes of ConfigMaps.
        text if text.starts_with("..") => broken.push("must not start with '..'".into()),
        _ => {}
    }
    broken
}

/// Returns the part of a text that is no domain name, and the rule it breaks.
pub(crate) fn full_domain_wrong(text: &str) -> Option<(&str, String)> {
    // `IsFullyQualifiedDomainName`: the dot of an absolute name is fine.
    let name = text.strip_suffix('.').unwrap_or(text);
    let broken = dns_subdomain(name);
    if !broken.is_empty() {
        return Some((name, broken.join(",")));
    }
    if !name.contains('.') {
        let rule = "should be a domain with at least two segments separated by dots";
        return Some((name, rule.into()));
    }
    let mut parts = name.split('.').map(|part| (part, dns_label(part)));
    let (part, broken) = parts.find(|(_, broken)| !broken.is_empty())?;
    Some((part, broken.join(",")))
}

/// The reason in a condition.
pub(crate) fn condition_reason(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let end = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let fits = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(end)
        && bytes.iter().all(|byte| end(byte) || b",:".contains(byte));
    if fits {
        return Vec::new();
    }
    let rule = "a condition reason must start with alphabetic character, optionally followed by a \
        string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
    let examples = [
        "my_name",
        "MY_NAME",
        "MyName",
        "ReasonA,ReasonB",
        "ReasonA:ReasonB",
    ];
    vec![regex_message(
        rule,
        &examples,
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
    )]
}

/// A share such as `25%`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let rule = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![regex_message(rule, &["1%", "93%"], "[0-9]+%")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_names_the_rules_that_are_broken() {
        let long = "a".repeat(64);
        let cases: [(Format, &str, usize); 26] = [
            (dns_label, "a-0", 0),
            (dns_label, "a.b", 1),
            (dns_label, "A", 1),
            (dns_label, &long, 1),
            (dns_label, "", 1),
            (dns_subdomain, "a.b-c", 0),
            (dns_subdomain, "a..b", 1),
            (wildcard_subdomain, "*.a.b", 0),
            (wildcard_subdomain, "a.b", 1),
            (underscored_subdomain, "_a.b_c", 0),
            (underscored_subdomain, "a_", 1),
            (qualified_name, "a.b/C_d", 0),
            (qualified_name, "a/b/c", 1),
            (qualified_name, "/c", 1),
            (qualified_name, "a/", 2),
            (qualified_name, "", 2),
            (label_value, "", 0),
            (label_value, "-", 1),
            (path_segment, "..", 1),
            (path_segment, "a/%", 2),
            (port_name, "http-1", 0),
            (port_name, "-1--", 3),
            (port_name, "", 2),
            (env_name, "A B", 0),
            (config_key, "..a", 1),
            (percent, "5%", 0),
        ];
        for (format, text, broken) in cases {
            assert_eq!(format(text).len(), broken, "{text}: {:?}", format(text));
        }
    }

    #[test]
    fn messages_are_those_of_the_api_server() {
        for (message, expected) in [
            (
                dns_label("A").remove(0),
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
                 '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                qualified_name("a/b/c").remove(0),
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
                 or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
                 and '/' (e.g. 'example.com/MyName')",
            ),
        ] {
            assert_eq!(message, expected);
        }
    }
}
