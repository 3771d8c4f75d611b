//! Names of pools, attributes and shares.

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats::{self, regex_message};
use crate::validation::volumes;

const MOST_POOL: usize = 253;
const MOST_IDENTIFIER: usize = 32;

/// Checks the name of a pool: subdomains with slashes between them.
pub(super) fn check_pool(at: &Field<'_>, causes: &mut Causes) {
    if !causes.check_given(at, "") {
        return;
    }
    if at.text().len() > MOST_POOL {
        causes.too_long(at, MOST_POOL);
    }
    // `validatePoolName`: each part is checked for itself, so one name may have several causes.
    for part in at.text().split('/') {
        causes.check_format_of(at, part, formats::dns_subdomain);
    }
}

/// Checks the name of an attribute or capacity, with an optional domain.
pub(super) fn check_qualified(at: &Field<'_>, name: &str, causes: &mut Causes) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        // `validateQualifiedName`: without a domain, the name belongs to the driver.
        [name] => check_identifier(at, name, causes),
        [domain, name] => {
            if domain.is_empty() {
                causes.invalid_as(at, "", "the domain must not be empty");
            } else {
                volumes::check_driver_name(at, domain, causes);
            }
            if name.is_empty() {
                causes.invalid_as(at, "", "the name must not be empty");
            } else {
                check_identifier(at, name, causes);
            }
        }
        // The API server accepts more than one slash.
        _ => {}
    }
}

/// Checks the name of an attribute, which has to have a domain.
pub(super) fn check_fully_qualified(at: &Field<'_>, causes: &mut Causes) {
    check_qualified(at, at.text(), causes);
    if !at.text().contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        causes.invalid_json(at, detail);
    }
}

fn check_identifier(at: &Field<'_>, name: &str, causes: &mut Causes) {
    if name.len() > MOST_IDENTIFIER {
        causes.too_long(at, MOST_IDENTIFIER);
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !starts || !name.bytes().all(is_part) {
        let rule = "a valid C identifier must start with alphabetic character or '_', followed by \
            a string of alphanumeric characters or '_'";
        let examples = ["my_name", "MY_NAME", "MyName"];
        let detail = regex_message(rule, &examples, "[A-Za-z_][A-Za-z0-9_]*");
        causes.invalid_as(at, name, &detail);
    }
}

/// Checks the identifier of a share.
pub(super) fn check_uid(at: &Field<'_>, causes: &mut Causes) {
    let text = at.text();
    if let Some(wrong) = no_uuid(text) {
        causes.invalid(at, &format!("error validating uid: {wrong}"));
    } else if text.len() != 36 || text != text.to_lowercase() {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` \
            with lowercase hexadecimal characters";
        causes.invalid(at, detail);
    }
}

/// Returns why a text is no UUID in any of its forms.
fn no_uuid(text: &str) -> Option<String> {
    const FORMAT: &str = "invalid UUID format";
    // The forms that `uuid.Parse` accepts, with its errors; only the plain one is then allowed.
    let plain = match (text.len(), text.get(..9)) {
        (36, _) => text,
        (45, Some(prefix)) if prefix.eq_ignore_ascii_case("urn:uuid:") => &text[9..],
        (45, prefix) => return Some(format!("invalid urn prefix: {:?}", prefix.unwrap_or(text))),
        (38, _) => match text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
        {
            Some(inner) => inner,
            None => return Some("invalid bracketed UUID format".to_owned()),
        },
        (32, _) => {
            let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            return (!digits).then(|| FORMAT.to_owned());
        }
        (length, _) => return Some(format!("invalid UUID length: {length}")),
    };
    let fits = |(at, byte): (usize, u8)| {
        if matches!(at, 8 | 13 | 18 | 23) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    };
    (!plain.bytes().enumerate().all(fits)).then(|| FORMAT.to_owned())
}
