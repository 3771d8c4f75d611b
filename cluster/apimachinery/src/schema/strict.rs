//! Finds unknown and duplicate members of a document, in the order of Go's decoder.
//!
//! Source: `sigs.k8s.io/json`.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field_path::FieldPath;
use super::resolve::TypeRef;
use super::types::{Field, Type};

/// The largest number of unknown and duplicate members that Go's decoder reports.
pub const MAX_STRICT_ERRORS: usize = 100;

/// The unknown and duplicate members of a document, each reported once.
#[derive(Debug, Default)]
pub struct StrictErrors {
    found: Vec<String>,
}

impl StrictErrors {
    /// Adds a member that is there again.
    pub fn add_duplicate(&mut self, path: &FieldPath<'_>) {
        self.add("duplicate", path);
    }

    /// Returns sentences about the members.
    #[must_use]
    pub fn into_sentences(self) -> Vec<String> {
        self.found
    }

    fn add(&mut self, fault: &str, path: &FieldPath<'_>) {
        if self.found.len() >= MAX_STRICT_ERRORS {
            return;
        }
        let sentence = format!("{fault} field {:?}", path.to_string());
        if !self.found.contains(&sentence) {
            self.found.push(sentence);
        }
    }
}

/// Finds unknown and duplicate members of an object of a built-in type in JSON.
///
/// ```
/// use lariat_apimachinery::schema;
///
/// let types = schema::builtin("v1", "ConfigMap").expect("it is built in");
/// let json = br#"{"data": {"a": "1", "a": "2"}, "dat": {}}"#;
/// let errors = schema::strict_errors(types.root(), json);
/// assert_eq!(errors, [r#"duplicate field "data.a""#, r#"unknown field "dat""#]);
/// ```
#[must_use]
pub fn strict_errors(typed: TypeRef<'_>, json: &[u8]) -> Vec<String> {
    read(Shape::Typed(typed), json)
}

/// Finds the same in a JSON patch.
#[must_use]
pub fn strict_errors_of_patch(json: &[u8]) -> Vec<String> {
    read(Shape::Operations, json)
}

fn read(shape: Shape<'_>, json: &[u8]) -> Vec<String> {
    let mut errors = StrictErrors::default();
    let seed = Reader {
        shape,
        path: &FieldPath::ROOT,
        errors: &mut errors,
    };
    let mut reader = serde_json::Deserializer::from_slice(json);
    // What cannot be read was refused before; what was found up to there counts.
    let _: Result<(), _> = seed.deserialize(&mut reader);
    errors.into_sentences()
}

/// The type into which Go reads a value.
#[derive(Debug, Clone, Copy)]
enum Shape<'a> {
    Typed(TypeRef<'a>),
    /// The operations of a JSON patch, and one of them.
    Operations,
    Operation,
    /// A map without a type: it has no unknown members.
    Untyped,
    /// It is kept as it is, or read by a decoder of its own.
    Raw,
}

impl<'a> Shape<'a> {
    /// Returns the shape of a member, or `None` if there is no such member.
    fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Typed(typed) => typed.find(name).map(|(field, below)| {
                let is_schema_or = field.and_then(Field::schema_alternative).is_some();
                let is_raw = matches!(below.get(), Some(Type::Any) | None);
                if is_schema_or || is_raw {
                    Self::Raw
                } else {
                    Self::Typed(below)
                }
            }),
            Self::Operation => match name {
                "op" | "path" | "from" => Some(Self::Raw),
                "value" => Some(Self::Untyped),
                _ => None,
            },
            Self::Untyped => Some(Self::Untyped),
            Self::Operations | Self::Raw => Some(Self::Raw),
        }
    }

    fn item(self) -> Self {
        match self {
            Self::Typed(typed) => Self::Typed(typed.item()),
            Self::Operations => Self::Operation,
            Self::Untyped => Self::Untyped,
            Self::Operation | Self::Raw => Self::Raw,
        }
    }
}

struct Reader<'a, 'b> {
    shape: Shape<'b>,
    path: &'a FieldPath<'a>,
    errors: &'a mut StrictErrors,
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Raw => reader.deserialize_ignored_any(IgnoredAny).map(drop),
            _ => reader.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for at in 0.. {
            let path = self.path.item(at);
            let seed = Reader {
                shape: self.shape.item(),
                path: &path,
                errors: self.errors,
            };
            if items.next_element_seed(seed)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = self.path.member(&name);
            let Some(shape) = self.shape.member(&name) else {
                // Nothing below it is looked at.
                self.errors.add("unknown", &path);
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&name) {
                self.errors.add_duplicate(&path);
            }
            members.next_value_seed(Reader {
                shape,
                path: &path,
                errors: self.errors,
            })?;
            seen.insert(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin;

    fn check(api_version: &str, kind: &str, json: &str, expected: &[&str]) {
        let schema = builtin(api_version, kind).unwrap();
        assert_eq!(
            strict_errors(schema.root(), json.as_bytes()),
            expected,
            "{json}"
        );
    }

    #[test]
    fn problems_have_the_order_of_the_document() {
        check(
            "v1",
            "ConfigMap",
            r#"{"zeta":1,"metadata":{"name":"o","zip":1,"zip":2,"alpha":1},"alpha":2,
                "data":{"b":"1","a":"1","b":"2","b":"3"},"zeta":3,"kind":"ConfigMap"}"#,
            &[
                r#"unknown field "zeta""#,
                r#"unknown field "metadata.zip""#,
                r#"unknown field "metadata.alpha""#,
                r#"unknown field "alpha""#,
                r#"duplicate field "data.b""#,
            ],
        );
        check(
            "v1",
            "Pod",
            r#"{"zz":1,"spec":{"z2":{"a":1,"a":2},"containers":[{"x":1,"name":"a","name":"a"},
                {"resources":{"q":1},"env":[{"name":"A","b":1,"b":2,"name":"B"}]}],"a2":1},"aa":1}"#,
            &[
                r#"unknown field "zz""#,
                r#"unknown field "spec.z2""#,
                r#"unknown field "spec.containers[0].x""#,
                r#"duplicate field "spec.containers[0].name""#,
                r#"unknown field "spec.containers[1].resources.q""#,
                r#"unknown field "spec.containers[1].env[0].b""#,
                r#"duplicate field "spec.containers[1].env[0].name""#,
                r#"unknown field "spec.a2""#,
                r#"unknown field "aa""#,
            ],
        );
    }

    #[test]
    fn what_is_kept_as_it_is_has_no_problems() {
        let json =
            r#"{"data":{"a":1,"a":2},"metadata":{"managedFields":[{"fieldsV1":{"a":1,"a":2}}]}}"#;
        check("apps/v1", "ControllerRevision", json, &[]);
    }

    #[test]
    fn a_patch_has_the_members_of_operations() {
        let patch = r#"[{"op":"add","path":"/a","value":{"b":1,"b":2}},{"z":1,"op":"add","a":2,"path":"/a","path":"/b"}]"#;
        let expected = [
            r#"duplicate field "[0].value.b""#,
            r#"unknown field "[1].z""#,
            r#"unknown field "[1].a""#,
            r#"duplicate field "[1].path""#,
        ];
        assert_eq!(strict_errors_of_patch(patch.as_bytes()), expected);
    }

    #[test]
    fn a_hundred_problems_are_reported() {
        let members: Vec<String> = (0..150).map(|at| format!(r#""f{at}":1"#)).collect();
        let json = format!("{{{}}}", members.join(","));
        let schema = builtin("v1", "ConfigMap").unwrap();
        assert_eq!(
            strict_errors(schema.root(), json.as_bytes()).len(),
            MAX_STRICT_ERRORS
        );
    }
}
