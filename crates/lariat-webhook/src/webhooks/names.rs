//! The rules for the names of webhooks.

use crate::error::WebhookError;

/// Checks the full name of a webhook, such as `quota.widgets.demo.dev`.
///
/// API servers accept domain names of at least three parts.
pub(super) fn check(name: &str) -> Result<(), WebhookError> {
    let wrong = |reason| {
        Err(WebhookError::Name {
            name: name.to_owned(),
            reason,
        })
    };
    let is_part = |part: &str| {
        let is_of = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty()
            && part.chars().all(is_of)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if !name.split('.').all(is_part) {
        return wrong("it must have lower-case letters, digits and dashes, separated by dots");
    }
    // The API server refuses names of fewer parts.
    if name.split('.').count() < 3 {
        return wrong(
            "with the name of the webhooks it must have at least three parts, as in quota.demo.dev",
        );
    }
    if name.len() > 253 {
        return wrong("it must have at most 253 characters");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_domain_names_of_three_parts() {
        check("quota.demo.dev").unwrap();
        check("a-1.b.c.d").unwrap();
        for wrong in [
            "quota.demo",
            "Quota.demo.dev",
            "a..b.c",
            "-a.b.c",
            "a.b.c-",
            "a/b.c.d",
            "",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert!(check(&format!("{}.demo.dev", "a".repeat(250))).is_err());
    }
}
