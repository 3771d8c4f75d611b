//! The labels and the annotation that mark the objects of a set.
//!
//! Members are found by these labels, in caches and by lists, across restarts and versions. So neither the names nor
//! the values of the labels may ever change.

use std::fmt;

use lariat_cache::CachedObject;
use lariat_core::{Gvk, Labels, ObjectKey, Uid};

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

/// The annotation with the kind and key of the owner.
///
/// With the uid in the label it identifies the owner, so that the API server can be asked whether the owner exists.
pub(super) const OWNER: &str = "lariat.dev/owner";

/// The marks that the members of a set have: labels, and an annotation with the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) owner_uid: String,
    pub(super) owner: RecordedOwner,
    pub(super) operator: String,
    pub(super) set: String,
    /// Earlier names of the operator.
    former_operators: Vec<String>,
    /// Earlier names of the set.
    former_sets: Vec<String>,
}

impl Marks {
    pub(super) fn new(owner: &Uid, recorded: RecordedOwner, operator: &str, set: &str) -> Self {
        Self {
            owner_uid: owner.to_string(),
            owner: recorded,
            operator: label_value(operator),
            set: label_value(set),
            former_operators: Vec::new(),
            former_sets: Vec::new(),
        }
    }

    /// Adds a former name of the operator, whose members are taken over.
    pub(super) fn add_former_operator(&mut self, name: &str) {
        self.former_operators.push(label_value(name));
    }

    /// Adds a former name of the set, whose members are taken over.
    pub(super) fn add_former_set(&mut self, name: &str) {
        self.former_sets.push(label_value(name));
    }

    /// Returns the label selector of the members.
    pub(super) fn selector(&self) -> String {
        let operators = self.operators().collect::<Vec<_>>().join(",");
        let sets = self.sets().collect::<Vec<_>>().join(",");
        let uid = &self.owner_uid;
        format!("{OWNER_UID}={uid},{OPERATOR} in ({operators}),{SET} in ({sets})")
    }

    /// Returns the pairs of operator and set that the set has or had, the present one first.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.operators()
            .flat_map(|operator| self.sets().map(move |set| (operator, set)))
    }

    fn operators(&self) -> impl Iterator<Item = &str> {
        names(&self.operator, &self.former_operators)
    }

    fn sets(&self) -> impl Iterator<Item = &str> {
        names(&self.set, &self.former_sets)
    }

    /// Returns the labels of a member, with `None` for those that it must not have.
    pub(super) fn labels(
        &self,
        order: usize,
        is_kept: bool,
    ) -> [(&'static str, Option<String>); 5] {
        [
            (OWNER_UID, Some(self.owner_uid.clone())),
            (OPERATOR, Some(self.operator.clone())),
            (SET, Some(self.set.clone())),
            // No label for the first step, so that sets without steps need none.
            (ORDER, (order > 0).then(|| order.to_string())),
            (KEEP, is_kept.then(|| "true".to_owned())),
        ]
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
        if (operator, set) == (&self.operator, &self.set) {
            return Membership::Ours;
        }
        if self.names().any(|names| names == (operator, set)) {
            return Membership::Former;
        }
        let set = set.clone();
        if self.operators().any(|name| name == operator) {
            return Membership::OfSibling { set };
        }
        Membership::OfAnotherOperator {
            operator: operator.clone(),
            set,
        }
    }

    /// Returns whether an object is a member, under the present or a former name.
    pub(super) fn is_member(&self, found: &Found) -> bool {
        matches!(self.read(found), Membership::Ours | Membership::Former)
    }
}

fn names<'a>(name: &'a str, former: &'a [String]) -> impl Iterator<Item = &'a str> {
    std::iter::once(name).chain(former.iter().map(|name| &**name))
}

/// The set that an object belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Membership {
    None,
    Ours,
    /// The set itself, under a former name of it or of the operator.
    Former,
    /// Another set of the same owner and operator.
    OfSibling {
        set: String,
    },
    OfAnotherOwner {
        uid: String,
    },
    OfAnotherOperator {
        operator: String,
        set: String,
    },
}

/// The kind and key of an owner, as in the annotation of its objects: `demo.dev/v1/Widget default/web`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedOwner {
    pub(super) gvk: Gvk,
    pub(super) key: ObjectKey,
}

impl RecordedOwner {
    /// Parses an annotation, which anybody may have written who may write the object.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (gvk, key) = text.split_once(' ')?;
        Some(Self {
            gvk: gvk.parse().ok()?,
            key: key.parse().ok()?,
        })
    }
}

impl fmt::Display for RecordedOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{} {}",
            self.gvk.api_version(),
            self.gvk.kind(),
            self.key
        )
    }
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
        let mut marks = marks();
        marks.add_former_set("old");
        let expected =
            "lariat.dev/owner-uid=u,lariat.dev/operator in (op),lariat.dev/set in (new,old)";
        assert_eq!(marks.selector(), expected);
    }

    fn marks() -> Marks {
        let owner = RecordedOwner::read("demo.dev/v1/Widget default/a").expect("an owner");
        Marks::new(&Uid::new("u"), owner, "op", "new")
    }

    #[test]
    fn labels_name_the_set_that_has_an_object() {
        let mut marks = marks();
        marks.add_former_set("old");
        marks.add_former_operator("before");
        let sibling = |set: &str| Membership::OfSibling {
            set: set.to_owned(),
        };
        for (uid, operator, set, expected) in [
            ("u", "op", "new", Membership::Ours),
            ("u", "op", "old", Membership::Former),
            ("u", "before", "new", Membership::Former),
            ("u", "before", "old", Membership::Former),
            ("u", "op", "x", sibling("x")),
            ("u", "before", "x", sibling("x")),
            (
                "u",
                "y",
                "new",
                Membership::OfAnotherOperator {
                    operator: "y".to_owned(),
                    set: "new".to_owned(),
                },
            ),
            (
                "v",
                "op",
                "new",
                Membership::OfAnotherOwner {
                    uid: "v".to_owned(),
                },
            ),
            ("u", "", "new", Membership::None),
        ] {
            let found = Found::new(|name| {
                let value = match name {
                    OWNER_UID => uid,
                    OPERATOR => operator,
                    SET => set,
                    _ => "",
                };
                Some(value).filter(|value| !value.is_empty())
            });
            assert_eq!(marks.read(&found), expected, "{operator} {set}");
        }
    }

    #[test]
    fn recorded_owner_is_read_as_written() {
        for text in ["demo.dev/v1/Widget default/a", "v1/Namespace shop"] {
            let owner = RecordedOwner::read(text).map(|owner| owner.to_string());
            assert_eq!(owner.as_deref(), Some(text));
        }
        for text in ["", "v1/Namespace", "Namespace a", "v1/Pod a/b/c", "v1/Pod "] {
            assert_eq!(RecordedOwner::read(text), None, "{text}");
        }
    }
}
