//! Finalizers of custom resources whose names others may use as well.

use super::collected::Warnings;
use crate::checks::metadata::STANDARD_FINALIZERS;
use crate::object::Object;
use crate::validation::field::Field;
use crate::validation::formats;

/// Warns of new finalizers without a domain.
///
/// Source: `validateKubeFinalizerName` in `k8s.io/apiextensions-apiserver/pkg/registry/customresource`.
pub(super) fn check(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let names = |object| -> Vec<&str> {
        let list = Field::of(object, "metadata").get("finalizers");
        list.items().map(|each| each.text()).collect()
    };
    let (mut added, known) = (names(object), old.map(names).unwrap_or_default());
    added.retain(|name| !known.contains(name));
    // Go's set is listed in order, so warnings are sorted and without duplicates.
    added.sort_unstable();
    added.dedup();
    let at = "metadata.finalizers";
    for name in added {
        for wrong in formats::qualified_name(name) {
            warnings.add(format!("{at}: {name:?}: {wrong}"));
        }
        // Both warnings can appear for one name: that it is malformed, and that it has no domain.
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let path = if name.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            warnings.add(format!(
                "{at}: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other \
                 finalizer writers"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn new_finalizers_without_a_domain_are_named() {
        let object = |names: &[&str]| {
            let object = json!({"metadata": {"finalizers": names}});
            object.as_object().unwrap().clone()
        };
        let warn = |new: &[&str], old: Option<&[&str]>| {
            let mut warnings = Warnings::default();
            check(&object(new), old.map(object).as_ref(), &mut warnings);
            warnings.into_list()
        };
        assert!(warn(&["a.dev/b", "orphan"], None).is_empty());
        assert!(warn(&["a", "b.c"], Some(&["b.c", "a"])).is_empty());
        let end = "to avoid accidental conflicts with other finalizer writers";
        assert_eq!(
            warn(&["b.c", "a", "a"], Some(&[])),
            [
                format!(
                    "metadata.finalizers: \"a\": prefer a domain-qualified finalizer name {end}"
                ),
                format!(
                    "metadata.finalizers: \"b.c\": prefer a domain-qualified finalizer name including a path (/) {end}"
                ),
            ]
        );
    }
}
