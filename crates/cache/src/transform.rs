//! Transforms: removing parts of objects, or changing them, before they are cached.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use lariat_core::RawObject;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A transform of objects before they are cached: removes or changes parts of them.
///
/// Paths are JSON pointers, in which `*` stands for every element of a list and every member of a map: `/status`,
/// `/spec/containers/*/env`, `/metadata/annotations/example.com~1notes` (`~1` is a slash). The cache reads the metadata
/// that it needs itself (names, version, labels, owners and finalizers) before the transform, so a transform does not
/// affect it; views show the rest.
///
/// An object of a kind with a transform is not cached if its content is not JSON, because it may contain what should be
/// removed: the cache keeps its last readable state.
///
/// ```
/// use lariat::cache::Transform;
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

/// The paths that `keep` always keeps.
const ALWAYS: [&str; 3] = ["/apiVersion", "/kind", "/metadata"];

impl Transform {
    /// Removes the values at some paths.
    ///
    /// # Panics
    ///
    /// Panics if a path is not a JSON pointer, which begins with a slash: it would match nothing.
    ///
    /// ```
    /// use lariat::KindOptions;
    /// use lariat::cache::Transform;
    ///
    /// let secrets = KindOptions::default().transform(Transform::drop(["/data", "/stringData"]));
    /// # let _ = secrets;
    /// ```
    #[track_caller]
    pub fn drop<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self(Kind::Drop(given(paths).into()))
    }

    /// Keeps only `apiVersion`, `kind`, `metadata` and the values at some paths.
    ///
    /// # Panics
    ///
    /// Panics as [`drop`](Self::drop) does.
    ///
    /// ```
    /// use lariat::cache::Transform;
    ///
    /// let labels_and_images = Transform::keep(["/spec/containers/*/image"]);
    /// # let _ = labels_and_images;
    /// ```
    #[track_caller]
    pub fn keep<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        let given = given(paths);
        Self(Kind::Keep(
            // Without these paths the result would not be a Kubernetes object.
            ALWAYS.into_iter().map(parse).chain(given).collect(),
        ))
    }

    /// Changes objects by a function.
    ///
    /// This costs a full decode and encode of each state. The function is called once for each state of an object. If
    /// it panics, an error is logged and the object is cached unchanged.
    ///
    /// ```
    /// use lariat::cache::Transform;
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

    /// Returns whether the effect is known without a call of the function.
    pub(crate) fn is_transparent(&self) -> bool {
        !matches!(self.0, Kind::Function(_))
    }

    /// Returns whether the value at a JSON pointer is certainly unchanged.
    ///
    /// This includes everything below the value. The empty pointer stands for the whole object.
    pub(crate) fn leaves_unchanged(&self, pointer: &str) -> bool {
        let wanted = if pointer.is_empty() {
            Path::new()
        } else {
            parse(pointer)
        };
        let leads_to = |path: &Path| path.len() <= wanted.len() && may_overlap(path, &wanted);
        match &self.0 {
            Kind::Drop(paths) => !paths.iter().any(|path| may_overlap(path, &wanted)),
            Kind::Keep(paths) => paths.iter().any(leads_to),
            Kind::Function(_) => false,
        }
    }

    /// Returns the transformed object.
    ///
    /// `None` if its JSON is invalid, or the function panicked.
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
    // The scanner handles the form that API servers send; the parser handles any other valid JSON.
    usual.or_else(|| prune(json, &ALWAYS.map(parse), true))
}

fn call(function: &Function, json: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(json).ok()?;
    // Unwind-safe: after a panic the half-changed value is dropped, and the caller keeps the original JSON.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| function(&mut value)));
    if outcome.is_err() {
        tracing::error!("the function of a transform panicked; the object is cached unchanged");
        return None;
    }
    serde_json::to_vec(&value).ok()
}

/// Parses the paths that a caller gives.
#[track_caller]
fn given<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Vec<Path> {
    let mut parsed = Vec::new();
    // A loop, because a closure would hide the place of the caller from the panic.
    for path in paths {
        let path = path.as_ref();
        assert!(
            path.starts_with('/'),
            "the path {path:?} of a transform is not a JSON pointer; write it as \"/spec/containers\""
        );
        parsed.push(parse(path));
    }
    parsed
}

/// Splits a JSON pointer into its parts, unescaped.
fn parse(pointer: &str) -> Path {
    let parts = pointer.trim_start_matches('/').split('/');
    parts
        // `~1` first: `~01` stands for the text `~1`, and must not become a slash.
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Returns whether one of two paths may be a prefix of the other.
fn may_overlap(path: &[String], other: &[String]) -> bool {
    let mut steps = path.iter().zip(other);
    steps.all(|(step, other)| step == "*" || step == other)
}

/// Removes the values at some paths from a JSON text; `keep` removes all others.
fn prune(json: &[u8], paths: &[Path], keep: bool) -> Option<Vec<u8>> {
    // Values are copied as text: decoding them would cost more, and lose the order of members and the form of numbers.
    let json: &RawValue = serde_json::from_slice(json).ok()?;
    let paths: Vec<&[String]> = paths.iter().map(|path| &**path).collect();
    let mut pruned = Vec::with_capacity(json.get().len());
    write_pruned(json, &paths, keep, &mut pruned)?;
    Some(pruned)
}

/// Copies a value without the values at some paths below it, or with only those.
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
        // A scalar has nothing below it that could be removed, even if a path leads further.
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
        // A path without further steps is about this child itself.
        let ends_here = below.iter().any(|path| path.is_empty());
        // To keep: whole if a path ends at the child, partly if one leads further, else omitted. To drop: the
        // reverse.
        let (whole, omitted) = if keep {
            (ends_here, below.is_empty())
        } else {
            (below.is_empty(), ends_here)
        };
        if omitted {
            continue;
        }
        if out.len() > start {
            out.push(b',');
        }
        if let Some(name) = name {
            // Encoded again, because the name was unescaped to compare it with paths.
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

/// Returns what remains of the paths that lead to a child, below that child.
fn below<'a>(paths: &[&'a [String]], name: Option<&str>) -> Vec<&'a [String]> {
    let leads = |path: &&'a [String]| {
        let (first, rest) = path.split_first()?;
        // `*` also matches the elements of a list, which have no name.
        (first == "*" || name == Some(&**first)).then_some(rest)
    };
    paths.iter().filter_map(leads).collect()
}

/// The members of a map, in the order of the text.
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
    #[should_panic(expected = "the path \"spec.containers\" of a transform is not a JSON pointer")]
    fn a_dropped_path_with_dots_is_refused() {
        let _ = Transform::drop(["/status", "spec.containers"]);
    }

    #[test]
    #[should_panic(expected = "the path \"\" of a transform is not a JSON pointer")]
    fn a_kept_path_that_is_empty_is_refused() {
        let _ = Transform::keep([""]);
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
            assert_eq!(dropped.leaves_unchanged(pointer), is_spared, "{pointer}");
        }
        let kept = Transform::keep(["/status/phase"]);
        for (pointer, is_spared) in [
            ("/status", false),
            ("/status/phase", true),
            ("/metadata/annotations", true),
            ("/spec", false),
        ] {
            assert_eq!(kept.leaves_unchanged(pointer), is_spared, "{pointer}");
        }
        assert!(!Transform::function(|_| {}).leaves_unchanged("/spec"));
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
