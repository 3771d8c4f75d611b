//! The labels that mark the objects of a set.
//!
//! Members are found by these labels, in caches and by lists, across restarts and versions. So neither the names nor
//! the values of the labels may ever change.

use lariat_cache::CachedObject;
use lariat_core::{Labels, Uid};

use crate::names::fnv;

/// The label with the uid of the owner.
pub(super) const OWNER_UID: &str = "lariat.dev/owner-uid";
/// The label with the operator that applies the set.
pub(super) const OPERATOR: &str = "lariat.dev/operator";
/// The label with the name of the set.
pub(super) const SET: &str = "lariat.dev/set";
/// The label with the number of earlier steps; absent for the first step.
const ORDER: &str = "lariat.dev/order";
/// The label of objects that are never deleted.
const KEEP: &str = "lariat.dev/keep";

/// The maximum length of a label value.
const LONGEST: usize = 63;

/// The label values that the members of a set have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) owner_uid: String,
    pub(super) operator: String,
    pub(super) set: String,
    /// Earlier names of the set, whose members are taken over.
    pub(super) former: Vec<String>,
}

impl Marks {
    pub(super) fn new(owner: &Uid, operator: &str, set: &str) -> Self {
        Self {
            owner_uid: owner.to_string(),
            operator: label_value(operator),
            set: label_value(set),
            former: Vec::new(),
        }
    }

    /// Returns the label selector of the members.
    pub(super) fn selector(&self) -> String {
        let sets = self.sets().collect::<Vec<_>>().join(",");
        let (uid, operator) = (&self.owner_uid, &self.operator);
        format!("{OWNER_UID}={uid},{OPERATOR}={operator},{SET} in ({sets})")
    }

    fn sets(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.set).chain(self.former.iter().map(|name| &**name))
    }

    /// Returns the labels of a member.
    fn labels(&self) -> [(&'static str, &str); 3] {
        [
            (OWNER_UID, &self.owner_uid),
            (OPERATOR, &self.operator),
            (SET, &self.set),
        ]
    }

    /// Returns the labels of a member at a place in the order of steps.
    pub(super) fn labels_of(&self, order: usize, is_kept: bool) -> Vec<(&'static str, String)> {
        let labels = self.labels().into_iter();
        let mut labels: Vec<_> = labels
            .map(|(name, value)| (name, value.to_owned()))
            .collect();
        // No label for the first step, so that sets without steps need none.
        if order > 0 {
            labels.push((ORDER, order.to_string()));
        }
        if is_kept {
            labels.push((KEEP, "true".to_owned()));
        }
        labels
    }

    /// Returns the set that an object belongs to, by its labels.
    pub(super) fn read(&self, found: &Found) -> Membership {
        let (Some(owner), Some(operator), Some(set)) =
            (&found.owner_uid, &found.operator, &found.set)
        else {
            return Membership::None;
        };
        // First the owner: sets of different owners may have the same name.
        if *owner != self.owner_uid {
            let uid = owner.clone();
            return Membership::OfAnotherOwner { uid };
        }
        if *operator == self.operator && self.sets().any(|name| name == set) {
            return Membership::Ours;
        }
        Membership::OfAnotherSet {
            operator: operator.clone(),
            set: set.clone(),
        }
    }
}

/// The set that an object belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Membership {
    None,
    Ours,
    OfAnotherOwner { uid: String },
    OfAnotherSet { operator: String, set: String },
}

/// The labels about sets that an object has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    owner_uid: Option<String>,
    operator: Option<String>,
    set: Option<String>,
    /// The number of steps before the object's.
    pub(super) order: usize,
    /// Whether the object is never deleted.
    pub(super) is_kept: bool,
}

impl Found {
    pub(super) fn new<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let get = |name| get(name).map(str::to_owned);
        Self {
            owner_uid: get(OWNER_UID),
            operator: get(OPERATOR),
            set: get(SET),
            order: get(ORDER)
                .and_then(|order| order.parse().ok())
                .unwrap_or_default(),
            is_kept: get(KEEP).as_deref() == Some("true"),
        }
    }

    /// Returns the uid of the set's owner.
    pub(super) fn owner_uid(&self) -> Option<&str> {
        self.owner_uid.as_deref()
    }
}

impl From<&CachedObject> for Found {
    fn from(object: &CachedObject) -> Self {
        Self::new(|name| object.labels().get(name))
    }
}

/// Returns the label value of a name.
///
/// It is the name itself if that is a valid value, and otherwise its valid characters and a hash. The result is the
/// same in every process and version, because members are found by it.
pub(super) fn label_value(name: &str) -> String {
    if !name.is_empty() && Labels::check_value(name).is_ok() {
        return name.to_owned();
    }
    with_hash(name, name)
}

/// Returns a label value of the valid characters of a name and a hash.
pub(super) fn with_hash(name: &str, hashed: &str) -> String {
    // The hash keeps two long names apart that share their first characters.
    let hash = format!("{:016x}", fnv(hashed));
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let kept: String = name
        .chars()
        .map(|c| if keep(c) { c } else { '-' })
        // One for the hyphen before the hash.
        .take(LONGEST - hash.len() - 1)
        .collect();
    match kept.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()) {
        "" => hash,
        kept => format!("{kept}-{hash}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_label_values_get_a_hash_and_stay_apart() {
        assert_eq!(label_value("widgets"), "widgets");
        let long = "x".repeat(100);
        for name in ["", "a/b", "-a", "ä", &long] {
            let value = label_value(name);
            assert!(Labels::check_value(&value).is_ok(), "{name} → {value}");
            assert!(!value.is_empty());
        }
        assert_ne!(label_value("a/b"), label_value("a:b"));
        assert_eq!(label_value("a/b"), "a-b-e620c3190468cf61");
    }

    #[test]
    fn a_hash_keeps_names_apart_that_read_the_same() {
        assert_eq!(with_hash("a.b.c", "a\0b.c"), "a.b.c-3f6446fc845b6b35");
        assert_ne!(with_hash("a.b.c", "a\0b.c"), with_hash("a.b.c", "a.b\0c"));
    }

    #[test]
    fn the_selector_finds_former_names_too() {
        let mut marks = Marks::new(&Uid::new("u"), "op", "new");
        marks.former.push("old".to_owned());
        let expected = "lariat.dev/owner-uid=u,lariat.dev/operator=op,lariat.dev/set in (new,old)";
        assert_eq!(marks.selector(), expected);
    }
}
