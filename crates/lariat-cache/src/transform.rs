//! Changing objects before they are cached.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use lariat_core::RawObject;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// What is removed from objects, or changed, before they are cached.
///
/// Paths are JSON pointers, in which `*` stands for every element of a list and every member of a map: `/status`,
/// `/spec/containers/*/env`, `/metadata/annotations/example.com~1notes` (`~1` is a slash). The metadata that the cache
/// itself needs (names, version, labels, owners and finalizers) is read before, so it is not affected; views show the
/// rest. If a kind has a transform, an object whose content is not JSON is not cached, because it may contain what is
/// to be removed: its last readable state stays, and the kind is listed again.
///
/// ```
/// use lariat_cache::Transform;
///
/// let smaller = Transform::drop(["/spec/containers/*/env", "/status/conditions"]);
/// # let _ = smaller;
/// ```
#[derive(Clone)]
#[must_use = "a transform does nothing until it is among the options of a kind"]
pub struct Transform(Kind);

#[derive(Clone)]
enum Kind {
    Drop(Arc<[Path]>),
    Keep(Arc<[Path]>),
    Function(Arc<Function>),
}

type Function = dyn Fn(&mut Value) + Send + Sync;
type Path = Vec<String>;

/// Paths that are always kept.
const ALWAYS: [&str; 3] = ["/apiVersion", "/kind", "/metadata"];

impl Transform {
    /// Removes the values at some paths.
    pub fn drop<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self(Kind::Drop(
            paths.into_iter().map(|path| parse(path.as_ref())).collect(),
        ))
    }

    /// Keeps only `apiVersion`, `kind`, `metadata` and the values at some paths.
    ///
    /// ```
    /// use lariat_cache::Transform;
    ///
    /// let labels_and_images = Transform::keep(["/spec/containers/*/image"]);
    /// # let _ = labels_and_images;
    /// ```
    pub fn keep<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        let given = paths.into_iter().map(|path| parse(path.as_ref()));
        Self(Kind::Keep(
            ALWAYS.into_iter().map(parse).chain(given).collect(),
        ))
    }

    /// Changes objects by a function, at the cost of a full decode and encode for each.
    ///
    /// It is called once for each state of an object. If it panics, the object is cached unchanged.
    ///
    /// ```
    /// use lariat_cache::Transform;
    ///
    /// let masked = Transform::function(|object| {
    ///     if let Some(env) = object.pointer_mut("/spec/env") {
    ///         *env = serde_json::Value::Null;
    ///     }
    /// });
    /// # let _ = masked;
    /// ```
    pub fn function(function: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self(Kind::Function(Arc::new(function)))
    }

    /// Returns whether its effect is known without calling it.
    pub(crate) fn is_transparent(&self) -> bool {
        !matches!(self.0, Kind::Function(_))
    }

    /// Returns whether the value at a JSON pointer is certainly unchanged.
    ///
    /// This includes all below it; of the empty pointer, the whole object.
    pub(crate) fn spares(&self, pointer: &str) -> bool {
        let wanted = if pointer.is_empty() {
            Path::new()
        } else {
            parse(pointer)
        };
        let leads_to = |path: &Path| path.len() <= wanted.len() && is_on_one_way(path, &wanted);
        match &self.0 {
            Kind::Drop(paths) => !paths.iter().any(|path| is_on_one_way(path, &wanted)),
            Kind::Keep(paths) => paths.iter().any(leads_to),
            Kind::Function(_) => false,
        }
    }

    /// Returns the transformed object.
    ///
    /// `None` if its JSON is invalid, or a function panicked.
    pub(crate) fn change(&self, json: &[u8]) -> Option<Vec<u8>> {
        match &self.0 {
            Kind::Drop(paths) => prune(json, paths, false),
            Kind::Keep(paths) => prune(json, paths, true),
            Kind::Function(function) => call(&**function, json),
        }
    }
}

/// Removes everything but `apiVersion`, `kind` and `metadata`.
///
/// `None` if the JSON is invalid.
pub(crate) fn metadata_of(json: &[u8]) -> Option<Vec<u8>> {
    let usual = RawObject::metadata_of(json).map(Vec::from);
    usual.or_else(|| prune(json, &ALWAYS.map(parse), true))
}

fn call(function: &Function, json: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(json).ok()?;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| function(&mut value)));
    if outcome.is_err() {
        tracing::error!("the function of a transform panicked; the object is cached unchanged");
        return None;
    }
    serde_json::to_vec(&value).ok()
}

/// Splits a JSON pointer.
fn parse(pointer: &str) -> Path {
    let parts = pointer.trim_start_matches('/').split('/');
    parts
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Returns whether one of two paths may be a prefix of the other.
fn is_on_one_way(path: &[String], other: &[String]) -> bool {
    let mut steps = path.iter().zip(other);
    steps.all(|(step, other)| step == "*" || step == other)
}

/// Removes the values at some paths from a JSON text, or all others.
fn prune(json: &[u8], paths: &[Path], keep: bool) -> Option<Vec<u8>> {
    let json: &RawValue = serde_json::from_slice(json).ok()?;
    let paths: Vec<&[String]> = paths.iter().map(|path| &**path).collect();
    let mut pruned = Vec::with_capacity(json.get().len());
    write_pruned(json, &paths, keep, &mut pruned)?;
    Some(pruned)
}

/// Copies a value without the values at the paths below it, or only those.
fn write_pruned(json: &RawValue, paths: &[&[String]], keep: bool, out: &mut Vec<u8>) -> Option<()> {
    let children = match json.get().as_bytes().first()? {
        b'{' => serde_json::from_str::<Members<'_>>(json.get()).ok()?.0,
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(json.get()).ok()?;
            elements
                .into_iter()
                .map(|element| (None, element))
                .collect()
        }
        // No path leads further from here, so there is nothing to remove.
        _ => {
            out.extend_from_slice(json.get().as_bytes());
            return Some(());
        }
    };
    let is_map = json.get().starts_with('{');
    out.push(if is_map { b'{' } else { b'[' });
    let start = out.len();
    for (name, value) in children {
        let below = below(paths, name.as_deref());
        let ends_here = below.iter().any(|path| path.is_empty());
        let (whole, gone) = if keep {
            (ends_here, below.is_empty())
        } else {
            (below.is_empty(), ends_here)
        };
        if gone {
            continue;
        }
        if out.len() > start {
            out.push(b',');
        }
        if let Some(name) = name {
            serde_json::to_writer(&mut *out, &name).ok()?;
            out.push(b':');
        }
        if whole {
            out.extend_from_slice(value.get().as_bytes());
        } else {
            write_pruned(value, &below, keep, out)?;
        }
    }
    out.push(if is_map { b'}' } else { b']' });
    Some(())
}

/// Returns the rest of the paths that lead to a child.
fn below<'a>(paths: &[&'a [String]], name: Option<&str>) -> Vec<&'a [String]> {
    let leads = |path: &&'a [String]| {
        let (first, rest) = path.split_first()?;
        (first == "*" || name == Some(&**first)).then_some(rest)
    };
    paths.iter().filter_map(leads).collect()
}

/// The members of a map, in their order.
struct Members<'a>(Vec<(Option<Cow<'a, str>>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    members.push((Some(name), map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Read)
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Drop(paths) => f.debug_tuple("Drop").field(paths).finish(),
            Kind::Keep(paths) => f.debug_tuple("Keep").field(paths).finish(),
            Kind::Function(_) => f.write_str("Function"),
        }
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::Gvk;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(transform: &Transform, expected: &Value) {
        let json = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "annotations": {"x/y": "1", "z": "2"}},
            "spec": {"nodeName": "n", "containers": [
                {"name": "c", "env": [1, 2]}, {"name": "d"}, "odd",
            ]},
            "status": {"phase": "Running"},
        });
        let gvk = Gvk::new("", "v1", "Pod");
        let object = RawObject::parse(json.to_string().as_bytes(), &gvk).unwrap();
        let json = transform.change(object.json()).expect("it is JSON");
        let changed = object.with_json(json);
        let content: Value = serde_json::from_slice(changed.json()).unwrap();
        let mut expected = expected.clone();
        expected["apiVersion"] = "v1".into();
        expected["kind"] = "Pod".into();
        assert_eq!(content, expected);
        assert_eq!(changed.key().name(), "a");
    }

    #[test]
    fn paths_are_dropped() {
        check(
            &Transform::drop([
                "/status",
                "/spec/containers/*/env",
                "/metadata/annotations/x~1y",
                "/no/such",
            ]),
            &json!({
                "metadata": {"name": "a", "annotations": {"z": "2"}},
                "spec": {"nodeName": "n", "containers": [{"name": "c"}, {"name": "d"}, "odd"]},
            }),
        );
    }

    #[test]
    fn only_some_paths_are_kept() {
        check(
            &Transform::keep(["/spec/containers/*/name"]),
            &json!({
                "metadata": {"name": "a", "annotations": {"x/y": "1", "z": "2"}},
                "spec": {"containers": [{"name": "c"}, {"name": "d"}, "odd"]},
            }),
        );
    }

    #[test]
    fn unchanged_paths_are_known() {
        let dropped =
            Transform::drop(["/status/conditions", "/spec/*/env", "/metadata/annotations"]);
        for (pointer, is_spared) in [
            ("/status", false),
            ("/status/conditions/0", false),
            ("/status/phase", true),
            ("/spec/containers/env", false),
            ("/metadata/annotations", false),
            ("/metadata/labels", true),
        ] {
            assert_eq!(dropped.spares(pointer), is_spared, "{pointer}");
        }
        let kept = Transform::keep(["/status/phase"]);
        for (pointer, is_spared) in [
            ("/status", false),
            ("/status/phase", true),
            ("/metadata/annotations", true),
            ("/spec", false),
        ] {
            assert_eq!(kept.spares(pointer), is_spared, "{pointer}");
        }
        assert!(!Transform::function(|_| {}).spares("/spec"));
    }

    #[test]
    fn a_function_changes_what_it_likes_and_a_panic_changes_nothing() {
        let expected = json!({"metadata": {"name": "a"}});
        check(
            &Transform::function(|value| {
                let map = value.as_object_mut().unwrap();
                map.remove("spec");
                map.remove("status");
                map["metadata"]
                    .as_object_mut()
                    .unwrap()
                    .remove("annotations");
            }),
            &expected,
        );
        let gvk = Gvk::new("", "v1", "Pod");
        let object = RawObject::parse(br#"{"metadata":{"name":"a"}}"#, &gvk).unwrap();
        let panics = Transform::function(|_| panic!("no"));
        assert_eq!(panics.change(object.json()), None);
    }
}
