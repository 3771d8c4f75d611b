//! Looks up the members of a structure: their types, and how they merge.

use serde_json::Value;

use super::maps::Outcome;
use crate::patch::PatchError;
use crate::schema::{self, PatchStrategy, Resolved, TypeRef};

/// A member of a structure.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// The type of the member, or of its items.
    pub(super) typed: TypeRef<'a>,
    pub(super) strategy: PatchStrategy,
}

/// Finds a member that has members.
pub(super) fn member<'a>(typed: TypeRef<'a>, name: &str) -> Outcome<Member<'a>> {
    if let Some(structure) = schema::struct_without(typed, name) {
        return unmergeable(format!(
            "unable to find api field in struct {structure} for the json field {name:?}"
        ));
    }
    // Null asks for the declared type: `resolve` looks at the value only where the type allows anything.
    if matches!(typed.resolve(&Value::Null), Resolved::Map) {
        return unmergeable(
            "merging an object in json but data type is not struct, instead is: map",
        );
    }
    Ok(Member {
        typed: typed.member(name).unwrap_or(typed.any()),
        strategy: typed.patch(name),
    })
}

/// Finds a member that is a list.
pub(super) fn list<'a>(typed: TypeRef<'a>, name: &str) -> Outcome<Member<'a>> {
    let found = member(typed, name)?;
    let is_list = |typed: TypeRef<'_>| matches!(typed.resolve(&Value::Null), Resolved::List(_));
    if matches!(found.typed.resolve(&Value::Null), Resolved::Map) {
        return unmergeable("expected slice or array type, but got: struct");
    }
    // Of a structure behind a pointer Go takes the structure.
    if !is_list(found.typed) {
        return Ok(found);
    }
    let item = found.typed.item();
    // `LookupPatchMetadataForSlice` cannot go into lists of lists.
    if is_list(item) {
        return unmergeable("unexpected slice of slice");
    }
    Ok(Member {
        typed: item,
        ..found
    })
}

/// Returns Go's name for the kind of a type.
pub(super) fn kind_of(typed: TypeRef<'_>) -> &'static str {
    match typed.resolve(&Value::Null) {
        Resolved::Map => "map",
        Resolved::List(_) => "slice",
        Resolved::Scalar(Some(schema::Scalar::String)) => "string",
        _ => "struct",
    }
}

pub(super) fn unmergeable<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(PatchError::Unmergeable(reason.into()))
}
