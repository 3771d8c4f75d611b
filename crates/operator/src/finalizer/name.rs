//! The rules for the names of finalizers.

use super::error::FinalizerNameError;
use crate::names::{LONGEST_WORD, is_domain, is_word};

/// Checks that a name is valid for a finalizer: `domain/name`.
pub(super) fn check(name: &str) -> Result<(), FinalizerNameError> {
    let invalid = |detail| FinalizerNameError {
        name: name.to_owned(),
        detail,
    };
    let Some((domain, rest)) = name.split_once('/') else {
        return Err(invalid("it has no domain"));
    };
    match () {
        () if !is_domain(domain) => Err(invalid("the part before the slash is not a domain")),
        () if !(is_word(rest) && rest.len() <= LONGEST_WORD) => Err(invalid(
            "the part after the slash must be up to 63 letters, digits, '-', '_' and '.'",
        )),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn names_are_what_the_api_server_takes() {
        let longest = format!("demo.dev/{}", "a".repeat(63));
        for good in ["demo.dev/cleanup", "d/C_l.e-4n", "1.a-b.dev/x", &longest] {
            check(good).unwrap();
        }
        let too_long = format!("demo.dev/{}", "a".repeat(64));
        let long_domain = format!("{}/a", "a.".repeat(127));
        for bad in [
            "",
            "cleanup",
            "/",
            "/a",
            "demo.dev/",
            "Demo.dev/a",
            "demo..dev/a",
            "-a.dev/a",
            "demo.dev/a/b",
            "demo.dev/-a",
            "demo.dev/a b",
            "demo.dev/ä",
            &too_long,
            &long_domain,
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
