//! Paths of files.

use super::causes::Causes;
use super::field::Field;
use super::formats;

/// Checks that no part of a path leads upwards.
pub(crate) fn check_no_backsteps(at: &Field<'_>, causes: &mut Causes) {
    if has_backsteps(at.text()) {
        causes.invalid_as(at, at.text(), "must not contain '..'");
    }
}

/// Returns whether a part of a path leads upwards.
pub(crate) fn has_backsteps(path: &str) -> bool {
    // Names such as `..data` do not lead upwards.
    path.split('/').any(|part| part == "..")
}

/// Checks that a path stays below its start.
pub(crate) fn check_descending(at: &Field<'_>, causes: &mut Causes) {
    if at.text().starts_with('/') {
        causes.invalid_as(at, at.text(), "must be a relative path");
    }
    check_no_backsteps(at, causes);
}

/// Checks a path in a volume, where names that begin with two dots are reserved.
pub(crate) fn check_local(at: &Field<'_>, causes: &mut Causes) {
    check_descending(at, causes);
    if at.text().starts_with("..") && !at.text().starts_with("../") {
        causes.invalid_as(at, at.text(), "must not start with '..'");
    }
}

/// Checks the permissions of a file, if there are some.
pub(crate) fn check_mode(at: &Field<'_>, causes: &mut Causes) {
    if at.int().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        causes.invalid(
            at,
            "must be a number between 0 and 0777 (octal), both inclusive",
        );
    }
}

/// Checks a path behind a domain, as in `example.com/name`.
pub(crate) fn check_domain_prefixed(at: &Field<'_>, causes: &mut Causes) {
    if !causes.check_given(at, "") {
        return;
    }
    // `IsDomainPrefixedPath`; further slashes belong to the path.
    let (host, path) = at.text().split_once('/').unwrap_or((at.text(), ""));
    if host.is_empty() || path.is_empty() {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.invalid(at, detail);
        return;
    }
    causes.check_format_of(at, host, formats::dns_subdomain);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !path.bytes().all(fits) {
        let expression = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
        let detail = formats::regex_message("Invalid path", &[], expression);
        causes.invalid_as(at, path, &detail);
    }
}
