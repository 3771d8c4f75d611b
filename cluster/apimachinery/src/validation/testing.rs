//! Objects and the causes that are expected of them.

use serde_json::Value;

use super::causes::Causes;
use super::context::{Context, Part};
use super::decide::check_of;
use crate::cause::StatusCause;

/// Checks the causes of a new object: each begins with one of the expected texts.
pub(super) fn check_created(api_version: &str, kind: &str, object: Value, expected: &[&str]) {
    run(api_version, kind, (None, object, Part::Main), expected);
}

/// Checks the causes of a changed object.
pub(super) fn check_updated(
    api_version: &str,
    kind: &str,
    old: &Value,
    new: Value,
    expected: &[&str],
) {
    run(api_version, kind, (Some(old), new, Part::Main), expected);
}

/// Checks the causes of a changed part of an object.
pub(super) fn check_part(
    (api_version, kind, part): (&str, &str, Part),
    old: &Value,
    new: Value,
    expected: &[&str],
) {
    run(api_version, kind, (Some(old), new, part), expected);
}

fn run(
    api_version: &str,
    kind: &str,
    (old, new, part): (Option<&Value>, Value, Part),
    expected: &[&str],
) {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let check = check_of(group, kind).expect("the kind has rules");
    let mut causes = Causes::default();
    let context = Context {
        object: new.as_object().expect("an object"),
        old: old.map(|old| old.as_object().expect("an object")),
        part,
    };
    check(&context, &mut causes);
    let mut found: Vec<String> = causes.into_list().iter().map(StatusCause::text).collect();
    found.sort();
    let fits = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| found.starts_with(expected));
    assert!(
        fits,
        "{new}\n  found    {found:#?}\n  expected {expected:#?}"
    );
}
