//! Which checks count, and what they find.

use super::check::Check;
use super::level::{Level, LevelVersion};
use super::pod::Pod;
use super::table::CHECKS;
use super::violation::Violations;

/// Finds what a level forbids in a Pod.
#[must_use]
pub fn evaluate(wanted: LevelVersion, pod: Pod<'_>) -> Violations {
    if wanted.level == Level::Privileged {
        return Violations::default();
    }
    let minor = wanted.version.minor();
    let counts = |check: &&Check| check.level <= wanted.level;
    let is_replaced = |id: &str| {
        let mut others = CHECKS.iter().filter(counts);
        others.any(|other| other.instead_of == Some(id) && other.at(minor).is_some())
    };
    let checks = CHECKS.iter().filter(counts);
    let found = checks
        .filter(|check| !is_replaced(check.id))
        .filter_map(|check| check.at(minor)?(pod));
    Violations(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_in_the_order_of_errors() {
        // As `populate` in registry.go sorts them.
        assert!(CHECKS.is_sorted_by_key(|check| (check.level, check.id)));
    }

    #[test]
    fn checks_replace_only_those_of_the_level_below() {
        for check in CHECKS {
            assert!(check.versions.is_sorted_by_key(|(since, _)| since));
            if let Some(id) = check.instead_of {
                let other = CHECKS.iter().find(|other| other.id == id);
                assert!(other.is_some_and(|other| other.level < check.level), "{id}");
            }
        }
    }
}
