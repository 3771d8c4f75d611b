//! Deserializes structs from JSON objects only.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A struct that is deserialized from a JSON object only.
///
/// A derived `Deserialize` also accepts an array and reads its items as fields, by position. The Kubernetes API has no
/// such form, so this type rejects arrays.
///
/// ```
/// use lariat_core::StrictObject;
///
/// #[derive(serde::Deserialize)]
/// struct Named {
///     name: String,
/// }
///
/// let read: StrictObject<Named> = serde_json::from_str(r#"{"name":"web"}"#)?;
/// assert_eq!(read.0.name, "web");
/// assert!(serde_json::from_str::<StrictObject<Named>>(r#"["web"]"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StrictObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StrictObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = deserializer.deserialize_map(Members(PhantomData));
        members.map(Self)
    }
}

/// A visitor that accepts only maps.
struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}
