//! Access against sets that are as simple as can be.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The namespaces there are; the empty one is that of cluster-scoped objects.
const NAMESPACES: [&str; 4] = ["", "a", "a-b", "b"];
const NAMES: [&str; 3] = ["x", "y", "z"];

/// What makes an access.
#[derive(Debug, Clone)]
enum Part {
    Everything,
    Namespaces(Vec<&'static str>),
    Names(&'static str, Vec<&'static str>),
}

impl Part {
    fn access(&self) -> Access {
        match self {
            Self::Everything => Access::everything(),
            Self::Namespaces(namespaces) => Access::of_namespaces(namespaces),
            Self::Names(namespace, names) => {
                let namespace = Some(*namespace).filter(|it| !it.is_empty());
                Access::of_names(namespace, names)
            }
        }
    }

    /// Returns whether it allows an object, computed naively.
    fn allows(&self, namespace: &str, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Namespaces(all) => !namespace.is_empty() && all.contains(&namespace),
            Self::Names(of, names) => *of == namespace && names.contains(&name),
        }
    }
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let namespace = || prop::sample::select(NAMESPACES.to_vec());
    let name = prop::sample::select(vec!["", "x", "y", "z"]);
    let part = prop_oneof![
        1 => Just(Part::Everything),
        4 => vec(namespace(), 0..3).prop_map(Part::Namespaces),
        8 => (namespace(), vec(name, 0..4)).prop_map(|(of, names)| Part::Names(of, names)),
    ];
    vec(part, 0..6)
}

fn join(parts: &[Part]) -> Access {
    parts.iter().map(Part::access).collect()
}

fn is_rising<T: Ord>(items: &[T]) -> bool {
    items.windows(2).all(|pair| pair[0] < pair[1])
}

proptest! {
    #[test]
    fn an_access_allows_what_its_parts_allow(parts in parts(), cut in any::<prop::sample::Index>()) {
        let access = join(&parts);
        let mut seen = false;
        for (namespace, name) in NAMESPACES.iter().flat_map(|of| NAMES.map(|name| (*of, name))) {
            let expected = parts.iter().any(|part| part.allows(namespace, name));
            seen |= expected;
            prop_assert_eq!(access.allows(&ObjectKey::namespaced(namespace, name)), expected);
        }
        let other = ObjectKey::namespaced("c", "x");
        let has_everything = parts.iter().any(|part| matches!(part, Part::Everything));
        prop_assert_eq!(access.allows(&other), has_everything);
        prop_assert_eq!(access.is_everything(), has_everything);
        prop_assert_eq!(access.is_nothing(), !seen);

        // However the parts are put together, the result is the same.
        let (one, two) = parts.split_at(cut.index(parts.len() + 1));
        prop_assert_eq!(join(one).union(&join(two)), access.clone());
        prop_assert_eq!(join(two).union(&join(one)), access.clone());
        prop_assert_eq!(access.clone().union(&access), access);
    }

    #[test]
    fn the_parts_that_are_returned_are_the_canonical_ones(parts in parts()) {
        let access = join(&parts);
        let namespaces: Vec<&str> = access.namespaces().collect();
        let groups: Vec<(Option<&str>, Vec<&str>)> =
            access.names().map(|(of, names)| (of, names.collect())).collect();
        prop_assert!(is_rising(&namespaces));
        let groups_of: Vec<Option<&str>> = groups.iter().map(|(of, _)| *of).collect();
        prop_assert!(is_rising(&groups_of));
        for (of, names) in &groups {
            prop_assert!(is_rising(names) && !names.is_empty() && !names.contains(&""));
            prop_assert!(of.is_none_or(|of| !of.is_empty() && !namespaces.contains(&of)));
        }
        prop_assert!(!namespaces.contains(&""));

        // They are all of it.
        let whole = Access::of_namespaces(&namespaces);
        let again = groups
            .iter()
            .map(|(of, names)| Access::of_names(*of, names))
            .fold(whole, |all, each| all.union(&each));
        if access.is_everything() {
            prop_assert!(again.is_nothing());
        } else {
            prop_assert_eq!(again, access);
        }
    }
}

#[test]
fn debug_output_shows_numbers_only() {
    let access = Access::of_namespaces(["secret-one", "secret-two"])
        .union(&Access::of_names(Some("hidden"), ["a", "b", "c"]))
        .union(&Access::of_names(None, ["node"]));
    assert_eq!(format!("{access:?}"), "Access { namespaces: 2, names: 4 }");
    assert_eq!(format!("{:?}", Access::everything()), "Access(everything)");
    assert_eq!(Access::default(), Access::nothing());
}

#[test]
fn a_clone_is_not_changed_by_a_union() {
    let one = Access::of_namespaces(["a"]);
    let both = one.clone().union(&Access::of_namespaces(["b"]));
    let names: HashSet<&str> = one.namespaces().collect();
    assert_eq!(names, HashSet::from(["a"]));
    assert_eq!(both.namespaces().count(), 2);
}

#[test]
fn names_with_a_slash_allow_nothing_else() {
    let access = Access::of_namespaces(["a/b"]).union(&Access::of_names(None, ["a/b"]));
    assert!(!access.allows(&ObjectKey::namespaced("a", "b")));
    assert!(!access.allows(&ObjectKey::namespaced("a", "b/c")));
}
