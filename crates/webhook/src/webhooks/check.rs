//! Checks the webhooks of a program before they are served or printed.

use std::collections::HashSet;

use super::webhooks::Webhooks;
use crate::configuration::Described;
use crate::endpoint::Endpoint;
use crate::error::WebhookError;

impl Webhooks {
    /// Checks names, rules and the endpoint; sends no request.
    pub(super) fn check(&self) -> Result<(), WebhookError> {
        let endpoint = self.endpoint.as_ref();
        if let Some(url) = endpoint.and_then(Endpoint::unusable_url) {
            return Err(WebhookError::Url(url.to_owned()));
        }
        for (_, hook) in &self.described.hooks {
            let name = self.described.full_name(&hook.name);
            check_name(&name)?;
            // Without an `Endpoint` another program installs the configuration, and knows the rules.
            if hook.kinds.is_empty() && hook.rules.is_empty() && self.endpoint.is_some() {
                return Err(WebhookError::NoRule(name));
            }
        }
        for name in self.described.removed_policies() {
            check_name(&name)?;
        }
        for policy in &self.described.policies {
            let name = self.described.full_name(policy.name());
            check_name(&name)?;
            if !policy.has_rules() {
                return Err(WebhookError::NoRule(name));
            }
        }
        let hooks = self.described.hooks.iter();
        let paths = hooks.map(|(role, hook)| role.path(&hook.name));
        let definitions = self.described.definitions.iter();
        let conversions = definitions.map(|definition| Described::conversion_path(definition));
        if let Some(path) = twice(paths.chain(conversions)) {
            return Err(WebhookError::Duplicate(path));
        }
        match twice(self.described.policy_names()) {
            Some(name) => Err(WebhookError::DuplicatePolicy(name)),
            None => Ok(()),
        }
    }
}

/// Returns a text that occurs twice, if there is one.
fn twice(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = HashSet::new();
    texts.find(|text| !seen.insert(text.clone()))
}

/// Checks the full name of a webhook, such as `quota.widgets.demo.dev`.
///
/// API servers accept domain names of at least three parts.
fn check_name(name: &str) -> Result<(), WebhookError> {
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
        check_name("quota.demo.dev").unwrap();
        check_name("a-1.b.c.d").unwrap();
        for wrong in [
            "quota.demo",
            "Quota.demo.dev",
            "a..b.c",
            "-a.b.c",
            "a.b.c-",
            "a/b.c.d",
            "",
        ] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
        assert!(check_name(&format!("{}.demo.dev", "a".repeat(250))).is_err());
    }
}
