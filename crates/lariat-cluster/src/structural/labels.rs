//! DNS labels, which most names in a definition are.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation.IsDNS1035Label`.

const MOST: usize = 63;

const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Checks a label of RFC 1035; the error lists what is wrong with it.
pub(crate) fn check_dns_1035(text: &str) -> Result<(), String> {
    let mut rules = Vec::new();
    if text.len() > MOST {
        rules.push(format!("must be no more than {MOST} bytes"));
    }
    let bytes = text.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-');
    if !fits {
        rules.push(DNS_1035.to_owned());
    }
    match rules.is_empty() {
        true => Ok(()),
        false => Err(rules.join(",")),
    }
}
