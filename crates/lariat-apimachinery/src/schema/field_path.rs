//! The paths of members, as messages name them.

use std::fmt;

/// How long a path gets, so that long names are not copied for everything below them.
const LONGEST: usize = 1024;

/// Takes one more step, such as `.name` or `[0]`; a path that is long enough stays as it is.
#[must_use]
pub fn longer(path: &str, step: fmt::Arguments<'_>) -> String {
    if path.len() >= LONGEST {
        return path.to_owned();
    }
    let mut longer = format!("{path}{step}");
    let end = longer.floor_char_boundary(LONGEST);
    longer.truncate(end);
    longer
}

/// Steps to a member of an object; the first step of all has no dot.
#[must_use]
pub fn member(path: &str, name: &str) -> String {
    match path {
        "" => longer("", format_args!("{name}")),
        path => longer(path, format_args!(".{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_between_characters() {
        assert_eq!(member(&member("", "spec"), "replicas"), "spec.replicas");
        let long = member("spec", &"é".repeat(LONGEST));
        assert!(long.len() <= LONGEST && long.starts_with("spec.é"));
        assert!(longer(&long, format_args!("[0]")).len() <= LONGEST);
    }
}
