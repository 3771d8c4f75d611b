//! The kinds of a program, by the names users give them.

use std::collections::BTreeSet;

use lariat_console::api::{KindNames, KindRef};
use strsim::damerau_levenshtein;

/// How many kinds an error lists.
const LISTED: usize = 30;

/// The short names of kubectl.
const SHORT: [(&str, &str); 25] = [
    ("cj", "cronjob"),
    ("cm", "configmap"),
    ("crd", "customresourcedefinition"),
    ("csr", "certificatesigningrequest"),
    ("deploy", "deployment"),
    ("ds", "daemonset"),
    ("ep", "endpoints"),
    ("ev", "event"),
    ("hpa", "horizontalpodautoscaler"),
    ("ing", "ingress"),
    ("limits", "limitrange"),
    ("netpol", "networkpolicy"),
    ("no", "node"),
    ("ns", "namespace"),
    ("pc", "priorityclass"),
    ("pdb", "poddisruptionbudget"),
    ("po", "pod"),
    ("pv", "persistentvolume"),
    ("pvc", "persistentvolumeclaim"),
    ("quota", "resourcequota"),
    ("rs", "replicaset"),
    ("sa", "serviceaccount"),
    ("sc", "storageclass"),
    ("sts", "statefulset"),
    ("svc", "service"),
];

/// Finds a kind among those that have a controller.
///
/// The name is a kind, its plural or a short name of kubectl in any case; the group, or version and group, may stand
/// behind a dot. As in kubectl the core group wins, and other groups must be named if several have the kind.
///
/// # Errors
///
/// None has the name, or several have it; the text lists those that there are.
pub(crate) fn choose(
    kinds: &[KindRef],
    name: &str,
    factory: Option<&str>,
) -> Result<KindRef, String> {
    let lower = name.to_lowercase();
    let named = kinds.iter().filter(|kind| is_called(kind, &lower));
    let mut found: Vec<&KindRef> = named
        .filter(|kind| factory.is_none_or(|context| kind.context == context))
        .collect();
    let core: Vec<&KindRef> = found
        .iter()
        .copied()
        .filter(|kind| kind.group.is_empty())
        .collect();
    if !core.is_empty() {
        found = core;
    }
    match found[..] {
        [] => Err(unknown(kinds, &lower, factory)),
        [kind] => Ok(kind.clone()),
        // It is one kind, of which several factories have a controller: a group would not help the user.
        [first, ..] if found.iter().all(|kind| kind.gvk() == first.gvk()) => {
            let contexts: Vec<&str> = found.iter().map(|kind| &kind.context[..]).collect();
            Err(format!(
                "several factories of the program have {}: say which with --factory {}",
                full_name(first),
                contexts.join(" or --factory ")
            ))
        }
        _ => {
            let names: BTreeSet<String> = found.iter().map(|kind| full_name(kind)).collect();
            let names: Vec<String> = names.into_iter().collect();
            Err(format!(
                "{name:?} may be {}: name the group as well",
                names.join(" or ")
            ))
        }
    }
}

/// Finds a kind by a name that discovery has for it, such as the short name of a CRD.
///
/// It is none unless exactly one kind has the name.
pub(crate) fn choose_named(
    kinds: &[KindNames],
    name: &str,
    factory: Option<&str>,
) -> Option<KindRef> {
    let lower = name.to_lowercase();
    let (own, group) = lower.split_once('.').unwrap_or((&lower, ""));
    let mut found = kinds.iter().filter(|each| {
        let is_of_factory = factory.is_none_or(|context| each.kind.context == context);
        let is_of_group = group.is_empty() || each.kind.group == group;
        is_of_factory && is_of_group && each.names.iter().any(|known| known == own)
    });
    let first = found.next()?;
    found.next().is_none().then(|| first.kind.clone())
}

/// Returns a kind with its group, as `Deployment.apps`.
pub(crate) fn full_name(kind: &KindRef) -> String {
    if kind.group.is_empty() {
        kind.kind.clone()
    } else {
        format!("{}.{}", kind.kind, kind.group)
    }
}

/// Returns whether a name in small letters is one of a kind.
fn is_called(kind: &KindRef, name: &str) -> bool {
    let group = kind.group.to_lowercase();
    let versioned = format!("{}.{group}", kind.version.to_lowercase());
    let (own, rest) = name.split_once('.').unwrap_or((name, ""));
    // The core group is empty, so its kinds with a version end in a dot, as `v1.`.
    let is_group = rest.is_empty() || rest == group || rest == versioned.trim_end_matches('.');
    is_group && names(kind).any(|known| known == own)
}

/// Returns the names of a kind in small letters: the kind, its plurals and its short name.
fn names(kind: &KindRef) -> impl Iterator<Item = String> {
    let word = kind.kind.to_lowercase();
    // The API server knows the plural; here all that English may make are taken.
    let plurals = [
        Some(format!("{word}s")),
        Some(format!("{word}es")),
        word.strip_suffix('y').map(|stem| format!("{stem}ies")),
    ];
    let short = SHORT.iter().find(|(_, known)| *known == word);
    let short = short.map(|(short, _)| (*short).to_owned());
    std::iter::once(word)
        .chain(plurals.into_iter().flatten())
        .chain(short)
}

fn unknown(kinds: &[KindRef], name: &str, factory: Option<&str>) -> String {
    let there = kinds
        .iter()
        .filter(|kind| factory.is_none_or(|context| kind.context == context));
    let all: BTreeSet<String> = there.clone().map(full_name).collect();
    if all.is_empty() {
        return match factory {
            Some(context) if !kinds.is_empty() => {
                let contexts: BTreeSet<&str> = kinds.iter().map(|kind| &kind.context[..]).collect();
                let contexts: Vec<&str> = contexts.into_iter().collect();
                format!(
                    "the program has no factory {context:?} with controllers; it has {}",
                    contexts.join(", ")
                )
            }
            _ => "the program has no controllers, or none that is in use yet".to_owned(),
        };
    }
    let own = name.split('.').next().unwrap_or(name);
    let distance = |kind: &KindRef| {
        let distances = names(kind).map(|known| damerau_levenshtein(&known, own));
        distances.min().unwrap_or(usize::MAX)
    };
    let near = there.min_by_key(|kind| distance(kind)).filter(|kind| {
        // One mistake for each three letters.
        distance(kind) <= own.chars().count().div_ceil(3)
    });
    let mut listed: Vec<&str> = all.iter().map(String::as_str).take(LISTED).collect();
    if all.len() > LISTED {
        listed.push("…");
    }
    let mut text = format!(
        "the program has no controller of {name:?}; it has {}",
        listed.join(", ")
    );
    if let Some(near) = near {
        text.push_str(&format!("; did you mean {}?", full_name(near)));
    }
    text
}

#[cfg(test)]
mod tests {
    use lariat_core::Gvk;

    use super::*;

    fn kinds() -> Vec<KindRef> {
        let of = |context: &str, group: &str, kind: &str| {
            KindRef::new(context, &Gvk::new(group, "v1", kind))
        };
        vec![
            of("a", "", "Pod"),
            of("a", "apps", "Deployment"),
            of("a", "networking.k8s.io", "NetworkPolicy"),
            of("a", "networking.k8s.io", "Ingress"),
            of("a", "", "Event"),
            of("a", "events.k8s.io", "Event"),
            of("a", "a.dev", "Thing"),
            of("a", "b.dev", "Thing"),
            of("a", "c.dev", "Shop"),
            of("b", "c.dev", "Shop"),
        ]
    }

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let found = choose(&kinds(), name, None).map(|kind| full_name(&kind));
        assert_eq!(found.unwrap_or_else(|error| error), expected, "{name}");
    }

    #[test]
    fn kinds_have_the_names_that_kubectl_takes() {
        for name in ["pods", "Pod", "pod", "PODS", "po", "pod.v1"] {
            check(name, "Pod");
        }
        for name in [
            "deploy",
            "deployments",
            "Deployment.apps",
            "deployments.v1.apps",
            "DEPLOYMENT.APPS",
        ] {
            check(name, "Deployment.apps");
        }
        for name in ["netpol", "networkpolicies", "networkpolicy"] {
            check(name, "NetworkPolicy.networking.k8s.io");
        }
        check("ingresses", "Ingress.networking.k8s.io");
        // The core group wins.
        check("events", "Event");
        check("ev.events.k8s.io", "Event.events.k8s.io");
    }

    #[test]
    fn short_name_of_discovery_finds_its_kind_if_it_is_unique() {
        let names = |kind: &KindRef, short: &str| KindNames {
            kind: kind.clone(),
            names: vec!["things".to_owned(), short.to_owned()],
        };
        let kinds = kinds();
        let all = [
            names(&kinds[6], "th"),
            names(&kinds[7], "tb"),
            names(&kinds[9], "sh"),
        ];
        let found =
            |name: &str, factory| choose_named(&all, name, factory).map(|it| full_name(&it));
        assert_eq!(found("TH", None).as_deref(), Some("Thing.a.dev"));
        assert_eq!(found("things", None), None);
        assert_eq!(found("things.b.dev", None).as_deref(), Some("Thing.b.dev"));
        assert_eq!(found("sh", Some("a")), None);
        assert_eq!(found("sh", Some("b")).as_deref(), Some("Shop.c.dev"));
    }

    #[test]
    fn several_kinds_of_a_name_are_told_apart_by_group_and_factory() {
        check(
            "thing",
            "\"thing\" may be Thing.a.dev or Thing.b.dev: name the group as well",
        );
        check("things.b.dev", "Thing.b.dev");
        check(
            "shop",
            "several factories of the program have Shop.c.dev: say which with --factory a or --factory b",
        );
        assert_eq!(choose(&kinds(), "shop", Some("b")).unwrap().context, "b");
    }

    #[test]
    fn an_unknown_kind_lists_what_there_is() {
        let all = "Deployment.apps, Event, Event.events.k8s.io, Ingress.networking.k8s.io, \
            NetworkPolicy.networking.k8s.io, Pod, Shop.c.dev, Thing.a.dev, Thing.b.dev";
        let none = |name: &str| format!("the program has no controller of {name:?}; it has {all}");
        check(
            "deploymnet",
            &format!("{}; did you mean Deployment.apps?", none("deploymnet")),
        );
        check("pdos", &format!("{}; did you mean Pod?", none("pdos")));
        check("configmaps", &none("configmaps"));
        check(
            "deployment.extensions",
            &format!(
                "{}; did you mean Deployment.apps?",
                none("deployment.extensions")
            ),
        );
        let error = choose(&kinds(), "pod", Some("z")).unwrap_err();
        assert_eq!(
            error,
            "the program has no factory \"z\" with controllers; it has a, b"
        );
        let error = choose(&[], "pod", None).unwrap_err();
        assert_eq!(
            error,
            "the program has no controllers, or none that is in use yet"
        );
    }
}
