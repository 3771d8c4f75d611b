//! Kinds as the oracle distinguishes them.

use bytes::Bytes;
use lariat_cluster::StoredObject;
use lariat_core::Gvk;
use serde::Deserialize;

/// Group and kind; versions of the API share objects.
pub(crate) type Kind = (String, String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Type<'a> {
    #[serde(borrow)]
    api_version: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
}

pub(crate) fn kind_of(object: &StoredObject) -> Option<Kind> {
    let json: Bytes = object.json();
    let of: Type<'_> = serde_json::from_slice(&json).ok()?;
    let group = of
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    Some((group.to_owned(), of.kind.into_owned()))
}

pub(crate) fn name_of(kind: &Gvk) -> Kind {
    (kind.group().to_owned(), kind.kind().to_owned())
}
