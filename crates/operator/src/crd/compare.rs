//! Compares a CRD of this program with the installed one.
//!
//! The result is a list of differing paths, and a merge patch that removes the differences. Each part has its own rule,
//! because the two never match literally: the API server fills in defaults, other programs add labels and versions, and
//! some fields are immutable.

use serde_json::{Map, Value, json};

use super::json::{differences, is_true, list, normal, object, text};
use super::options::VERSION;
use super::report::CrdMismatch;
use super::versions::{self, Versions};

/// The differences between an installed CRD and the one of this program.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// The paths at which the CRDs differ.
    pub(super) paths: Vec<String>,
    /// The merge patch that removes the differences, valid for the compared state only.
    pub(super) patch: Value,
    pub(super) mismatches: Vec<CrdMismatch>,
    /// The reason why no patch can remove them, if there is one.
    pub(super) incompatible: Option<String>,
    /// Served versions of this program that the installed CRD does not serve.
    pub(super) unserved: Vec<String>,
    /// The version numbers of the installed CRD and ours, if the former is greater.
    pub(super) newer: Option<(u64, u64)>,
}

/// Compares our CRD with the installed one.
pub(super) fn compare(ours: &Value, theirs: &Value) -> Comparison {
    let mut found = Comparison {
        incompatible: fixed(ours, theirs),
        unserved: unserved(ours, theirs),
        newer: newer(ours, theirs),
        ..Comparison::default()
    };
    let mut patch = Map::new();
    let metadata = found.metadata(ours, theirs);
    let mut spec = found.members(ours, theirs);
    if let Some(names) = found.names(ours, theirs) {
        spec.insert("names".into(), names);
    }
    if let Some(conversion) = found.conversion(ours, theirs) {
        spec.insert("conversion".into(), conversion);
    }
    if let Some(merged) = found.versions(ours, theirs) {
        spec.insert("versions".into(), merged);
    }
    patch.insert("metadata".into(), metadata);
    if !spec.is_empty() {
        patch.insert("spec".into(), spec.into());
    }
    found.patch = patch.into();
    found
}

impl Comparison {
    /// Compares our labels and annotations; others' are left alone.
    ///
    /// The patch carries uid and resource version, so that it applies to the compared state only.
    fn metadata(&mut self, ours: &Value, theirs: &Value) -> Value {
        let meta = |member: &str| theirs["metadata"][member].clone();
        let mut metadata = json!({"uid": meta("uid"), "resourceVersion": meta("resourceVersion")});
        for part in ["labels", "annotations"] {
            let pointer = format!("/metadata/{part}");
            for (name, value) in object(ours, &pointer).into_iter().flatten() {
                let installed = object(theirs, &pointer).and_then(|members| members.get(name));
                if installed != Some(value) {
                    self.paths.push(format!("metadata.{part}.{name}"));
                    metadata[part][name] = value.clone();
                }
            }
        }
        metadata
    }

    /// Compares the members of the specification that have no rule of their own.
    fn members(&mut self, ours: &Value, theirs: &Value) -> Map<String, Value> {
        let members = object(ours, "/spec").into_iter().flatten();
        let mut changed = Map::new();
        for (name, value) in members {
            // These three have rules of their own below.
            let is_apart = ["names", "conversion", "versions"].contains(&name.as_str());
            if !is_apart
                && normal(value) != normal(&theirs["spec"][name])
                && !is_unsaid(name, value, theirs)
            {
                self.paths.push(format!("spec.{name}"));
                changed.insert(name.clone(), value.clone());
            }
        }
        changed
    }

    /// Compares the names.
    ///
    /// Short names and categories that ours lacks mean an empty list: a release that drops a short name must be able to
    /// remove it.
    fn names(&mut self, ours: &Value, theirs: &Value) -> Option<Value> {
        let (our, their) = (&ours["spec"]["names"], &theirs["spec"]["names"]);
        let mut changed = Map::new();
        let none = ["categories", "shortNames"]
            .map(|name| (name.to_owned(), json!([])))
            .into_iter()
            .filter(|(name, _)| our[name].is_null());
        let mut all = our.as_object().cloned().unwrap_or_default();
        all.extend(none);
        for (name, value) in &all {
            // The API server omits empty lists, and a merge patch removes a member with `null`.
            let is_none = value.as_array().is_some_and(Vec::is_empty);
            let wanted = if is_none { &Value::Null } else { value };
            if *wanted != their[name] {
                self.paths.push(format!("spec.names.{name}"));
                changed.insert(name.clone(), wanted.clone());
            }
        }
        // The API server derived these from the old kind. With `null` it derives them from the new one.
        let derived = ["listKind", "singular"].into_iter();
        if our["kind"] != their["kind"] {
            let unsaid = derived.filter(|name| our[*name].is_null());
            changed.extend(unsaid.map(|name| (name.to_owned(), Value::Null)));
        }
        (!changed.is_empty()).then(|| changed.into())
    }

    /// Compares the conversion, if ours has one.
    ///
    /// Members that only the installed one has are kept, such as a `caBundle` that cert-manager has injected.
    fn conversion(&mut self, ours: &Value, theirs: &Value) -> Option<Value> {
        let wanted = ours
            .pointer("/spec/conversion")
            .filter(|it| !it.is_null())?;
        let installed = &theirs["spec"]["conversion"];
        let before = self.paths.len();
        let is_none = text(wanted, "/strategy") == "None";
        // The API server may not have filled in the default, `None`, yet.
        if is_none && matches!(text(installed, "/strategy"), "" | "None") {
            return None;
        }
        said(
            "spec.conversion",
            &normal(wanted),
            &normal(installed),
            &mut self.paths,
        );
        let is_different = self.paths.len() > before;
        // A merge patch keeps members that it does not name, and the API server refuses the strategy `None` with a
        // webhook. So the webhook is removed explicitly.
        let none = json!({"strategy": "None", "webhook": null});
        is_different.then(|| if is_none { none } else { wanted.clone() })
    }

    /// Compares the versions, after merging ours with those that only theirs has.
    ///
    /// A merge patch replaces lists, so the patch must contain all versions.
    fn versions(&mut self, ours: &Value, theirs: &Value) -> Option<Value> {
        let (our, their) = (list(ours, "/spec/versions"), list(theirs, "/spec/versions"));
        // Only a greater number shows that the installed schema is the older one.
        let removes_fields = number(ours) > number(theirs);
        let Versions { merged, mismatches } = versions::merge(our, their, removes_fields);
        self.mismatches.extend(mismatches);
        self.mismatches.extend(still_stored(our, theirs));
        let before = self.paths.len();
        for version in &merged {
            let name = versions::name(version);
            let path = format!("spec.versions[{name}]");
            match versions::named(their, name) {
                Some(installed) => {
                    differences(&path, &normal(version), &normal(installed), &mut self.paths);
                }
                None => self.paths.push(path),
            }
        }
        (self.paths.len() > before).then(|| merged.into())
    }
}

/// Returns whether a member that theirs omits has its default value in ours.
fn is_unsaid(name: &str, value: &Value, theirs: &Value) -> bool {
    name == "preserveUnknownFields"
        && *value == Value::Bool(false)
        && theirs["spec"][name].is_null()
}

/// Adds the paths at which our members differ.
///
/// Members that only theirs has are ignored.
fn said(path: &str, ours: &Value, theirs: &Value, into: &mut Vec<String>) {
    match (ours.as_object(), theirs.as_object()) {
        (Some(our), Some(_)) => {
            for (name, value) in our {
                said(&format!("{path}.{name}"), value, &theirs[name], into);
            }
        }
        _ if ours != theirs => into.push(path.to_owned()),
        _ => {}
    }
}

/// Returns a difference in an immutable member, as text.
fn fixed(ours: &Value, theirs: &Value) -> Option<String> {
    // Until the CRD is established, the API server still accepts changes of these members.
    if !is_condition(theirs, "Established", "True") {
        return None;
    }
    let pointers = [
        "/spec/group",
        "/spec/scope",
        "/spec/names/plural",
        "/spec/names/kind",
    ];
    let differs = |pointer: &&str| text(ours, pointer) != text(theirs, pointer);
    let different = pointers.into_iter().find(differs)?;
    Some(format!(
        "its {} is {}, but {} in this program, and cannot be changed: delete the CRD, and with it all its objects, or \
         give the kind of this program another name",
        different[1..].replace('/', "."),
        text(theirs, different),
        text(ours, different),
    ))
}

/// Returns our served versions that theirs does not serve.
fn unserved(ours: &Value, theirs: &Value) -> Vec<String> {
    let installed = list(theirs, "/spec/versions");
    let is_served = |name: &str| {
        versions::named(installed, name).is_some_and(|version| is_true(version, "/served"))
    };
    served(ours)
        .filter(|name| !is_served(name))
        .map(str::to_owned)
        .collect()
}

/// Returns the names of the served versions of a CRD.
pub(super) fn served(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = list(definition, "/spec/versions").iter();
    let served = versions.filter(|version| is_true(version, "/served"));
    served.map(versions::name)
}

/// Returns the older versions that may have stored objects and that ours lacks.
///
/// Without the version the API server could not read these objects.
fn still_stored(ours: &[Value], theirs: &Value) -> Vec<CrdMismatch> {
    // Newer versions belong to a newer program, which will migrate its objects itself.
    let storage = versions::storage(ours).unwrap_or_default();
    let stored = list(theirs, "/status/storedVersions")
        .iter()
        .filter_map(Value::as_str)
        .filter(|version| versions::named(ours, version).is_none())
        .filter(|version| !versions::is_newer(version, storage));
    let mismatch = |version: &str| CrdMismatch::StillStored {
        version: version.to_owned(),
    };
    stored.map(mismatch).collect()
}

/// Returns both version numbers if the installed CRD has the greater one.
fn newer(ours: &Value, theirs: &Value) -> Option<(u64, u64)> {
    let (installed, ours) = (number(theirs)?, number(ours).unwrap_or(0));
    (installed > ours).then_some((installed, ours))
}

/// Returns the version number of a CRD.
fn number(definition: &Value) -> Option<u64> {
    let annotation = definition["metadata"]["annotations"][VERSION].as_str();
    annotation.and_then(|text| text.parse().ok())
}

/// Returns whether a condition of a CRD has a status.
pub(super) fn is_condition(definition: &Value, condition: &str, status: &str) -> bool {
    let mut conditions = list(definition, "/status/conditions")
        .iter()
        .filter(|each| text(each, "/type") == condition);
    conditions.any(|each| text(each, "/status") == status)
}

/// Returns the API server's messages for conditions that are not as wanted.
pub(super) fn complaints(definition: &Value, wanted: &[(&str, &str)]) -> Vec<String> {
    let conditions = list(definition, "/status/conditions").iter();
    let said = |condition: &Value| {
        let of = |pointer: &str| text(condition, pointer).to_owned();
        let (name, status) = (of("/type"), of("/status"));
        let is_bad = wanted
            .iter()
            .any(|(each, good)| *each == name && *good != status);
        is_bad.then(|| format!("{name} is {status} ({}: {})", of("/reason"), of("/message")))
    };
    conditions.filter_map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        json!({
            "metadata": {"name": "widgets.demo.dev", "uid": "1", "resourceVersion": "7"},
            "spec": {
                "group": "demo.dev", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}],
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]},
        })
    }

    fn with(pointer: &str, member: &str, value: Value) -> Value {
        let mut made = definition();
        made.pointer_mut(pointer).unwrap()[member] = value;
        made
    }

    #[track_caller]
    fn check(ours: &Value, theirs: &Value, paths: &[&str], spec: Option<&Value>) {
        let found = compare(ours, theirs);
        assert_eq!(found.paths, paths);
        assert_eq!(found.patch.get("spec"), spec);
        assert_eq!(found.patch["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn what_others_say_is_no_difference() {
        let mut theirs = definition();
        theirs["metadata"]["labels"] = json!({"a": "b"});
        theirs["spec"]["names"]["listKind"] = "WidgetList".into();
        theirs["spec"]["conversion"] = json!({"webhook": {"clientConfig": {"caBundle": "x"}}});
        theirs["spec"]["unknown"] = 1.into();
        check(&definition(), &theirs, &[], None);
        let none = with("/spec", "conversion", json!({"strategy": "None"}));
        check(&none, &definition(), &[], None);
        let unsaid = with("/spec", "preserveUnknownFields", false.into());
        check(&unsaid, &definition(), &[], None);
    }

    #[test]
    fn an_injected_bundle_stays() {
        let webhook =
            |client: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": client}});
        let theirs = with(
            "/spec",
            "conversion",
            webhook(json!({"url": "a", "caBundle": "x"})),
        );
        let ours = |url: &str| with("/spec", "conversion", webhook(json!({"url": url})));
        check(&ours("a"), &theirs, &[], None);
        let wanted = json!({"conversion": webhook(json!({"url": "b"}))});
        check(
            &ours("b"),
            &theirs,
            &["spec.conversion.webhook.clientConfig.url"],
            Some(&wanted),
        );
        let none = with("/spec", "conversion", json!({"strategy": "None"}));
        let wanted = json!({"conversion": {"strategy": "None", "webhook": null}});
        check(&none, &theirs, &["spec.conversion.strategy"], Some(&wanted));
    }

    #[test]
    fn short_names_that_are_not_said_are_none() {
        for none in [Value::Null, json!([])] {
            let none = with("/spec/names", "shortNames", none);
            let wanted = json!({"names": {"shortNames": null}});
            check(
                &none,
                &definition(),
                &["spec.names.shortNames"],
                Some(&wanted),
            );
            let installed = with("/spec/names", "shortNames", Value::Null);
            check(&none, &installed, &[], None);
        }
    }

    #[test]
    fn what_a_version_had_is_replaced_as_a_whole() {
        let theirs = with("/spec/versions/0", "subresources", json!({"status": {}}));
        let wanted = json!({"versions": definition()["spec"]["versions"]});
        check(
            &definition(),
            &theirs,
            &["spec.versions[v1].subresources"],
            Some(&wanted),
        );
    }

    #[test]
    fn what_cannot_be_changed_is_said() {
        let cluster = with("/spec", "scope", "Cluster".into());
        let reason = compare(&definition(), &cluster).incompatible.unwrap();
        assert!(
            reason.starts_with("its spec.scope is Cluster, but Namespaced in this program"),
            "{reason}"
        );
    }

    #[test]
    fn numbers_tell_newer_from_older() {
        let numbered = |n: &str| with("/metadata", "annotations", json!({VERSION: n}));
        assert_eq!(compare(&definition(), &numbered("2")).newer, Some((2, 0)));
        assert_eq!(
            compare(&numbered("3"), &numbered("10")).newer,
            Some((10, 3))
        );
        assert_eq!(compare(&numbered("2"), &numbered("2")).newer, None);
        assert_eq!(compare(&numbered("2"), &numbered("nonsense")).newer, None);
    }
}
