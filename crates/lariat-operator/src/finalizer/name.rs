//! What finalizers may be called.

use super::error::FinalizerNameError;

const LONGEST_DOMAIN: usize = 253;
const LONGEST_NAME: usize = 63;

/// Checks that a name is one the API server takes for a finalizer of its own: `domain/name`.
pub(super) fn check(name: &str) -> Result<(), FinalizerNameError> {
    let invalid = |detail| FinalizerNameError {
        name: name.to_owned(),
        detail,
    };
    let Some((domain, rest)) = name.split_once('/') else {
        return Err(invalid("it has no domain"));
    };
    match () {
        () if !is_domain(domain) => Err(invalid("what is before the slash is not a domain")),
        () if !is_name(rest) => Err(invalid(
            "what is after the slash is not up to 63 letters, digits, '-', '_' and '.'",
        )),
        () => Ok(()),
    }
}

fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(taken)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= LONGEST_DOMAIN && text.split('.').all(is_label)
}

fn is_name(text: &str) -> bool {
    let ends_well = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let taken = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= LONGEST_NAME
        && ends_well(text.bytes().next())
        && ends_well(text.bytes().next_back())
        && text.bytes().all(taken)
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
