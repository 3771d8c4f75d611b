//! The attributes of a device.

use super::shapes::ATTRIBUTE;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::structs;

const MOST_BYTES: usize = 64;
const MEMBERS: [&str; 4] = ["int", "bool", "string", "version"];

/// Checks the value of an attribute, of which there is one, of one type.
pub(super) fn check_attribute(attribute: &Field<'_>, causes: &mut Causes) {
    let (text, version) = (attribute.get("string"), attribute.get("version"));
    check_length(&text, causes);
    if version.is_set() {
        if !is_version(version.text()) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            causes.invalid_as(&version, version.text(), detail);
        }
        check_length(&version, causes);
    }
    let detail = "exactly one value must be specified";
    match attribute.given(&MEMBERS).len() {
        // `validateDeviceAttribute` shows an empty text for none, and the structure for several.
        0 => causes.invalid_as(attribute, "", detail),
        1 => {}
        _ => {
            let shown = structs::shown(attribute.value(), ATTRIBUTE);
            causes.invalid_struct(attribute, &shown, detail);
        }
    }
}

fn check_length(at: &Field<'_>, causes: &mut Causes) {
    if at.text().len() > MOST_BYTES {
        causes.too_long(at, MOST_BYTES);
    }
}

/// Returns whether a text is a version such as `1.2.3-beta.1+build.5`.
fn is_version(text: &str) -> bool {
    // The build comes last and may contain dashes, so it is cut off first.
    let (rest, build) = cut(text, '+');
    let (core, before) = cut(rest, '-');
    let is_build = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(fits)
    };
    let is_number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && (part == "0" || !part.starts_with('0'))
    };
    // A part of digits only is a number, which may not begin with zero.
    let has_letter = |part: &str| part.bytes().any(|byte| !byte.is_ascii_digit());
    let is_before = |part: &str| is_number(part) || (is_build(part) && has_letter(part));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && before.is_none_or(|before| before.split('.').all(is_before))
        && build.is_none_or(|build| build.split('.').all(is_build))
}

/// Splits a text at a separator, if it has one.
fn cut(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::is_version;

    #[test]
    fn versions_are_those_of_semver() {
        for text in ["1.2.3", "0.0.0-a", "1.0.0-0.x-y.7+b.01", "1.0.0+a-b"] {
            assert!(is_version(text), "{text}");
        }
        for text in [
            "", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3",
        ] {
            assert!(!is_version(text), "{text}");
        }
    }
}
