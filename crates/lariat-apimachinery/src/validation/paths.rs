//! Paths of files.

use super::causes::Causes;
use super::field::Field;

/// Checks that no part of a path leads upwards.
pub(crate) fn check_no_backsteps(at: &Field<'_>, causes: &mut Causes) {
    if has_backsteps(at.text()) {
        causes.invalid_as(at, at.text(), "must not contain '..'");
    }
}

/// Returns whether a part of a path leads upwards.
pub(crate) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Checks that a path stays below where it starts.
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
