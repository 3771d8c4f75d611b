//! The paths of members, as messages name them.

use std::fmt;

/// The longest path; it keeps long names from being copied for every field below.
const LONGEST: usize = 1024;

/// Appends a segment such as `.name` or `[0]`, unless the path is too long already.
#[must_use]
pub fn longer(path: &str, step: fmt::Arguments<'_>) -> String {
    if path.len() >= LONGEST {
        return path.to_owned();
    }
    let mut longer = format!("{path}{step}");
    // The name may end within a character at this length.
    let end = longer.floor_char_boundary(LONGEST);
    longer.truncate(end);
    longer
}

/// Appends a member; the first segment has no dot.
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
