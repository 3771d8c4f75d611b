//! The form of objects: decoded as their kind, with defaults filled in.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::schema::{self, DecodeError};
use lariat_apimachinery::structural::is_of_metadata;
use lariat_apimachinery::{crd, defaults};

use super::autoscalers;
use super::custom::{coerce, conform, conform_applied};
use super::metadata::as_go_writes;

/// Decodes the result of an apply; returns the members unknown to its kind.
///
/// A real server drops nulls of custom resources as it reads them, which is not how it comes to this one.
pub(crate) fn read_applied(
    resource: &Resource,
    object: &mut Object,
) -> Result<Vec<String>, DecodeError> {
    if !resource.rules.custom {
        return read(resource, object);
    }
    as_go_writes(object);
    let unknown = conform_applied(resource, object);
    object.values_mut().for_each(schema::write_whole_numbers);
    Ok(unknown)
}

/// Decodes an object as its kind; returns the members the kind does not have.
pub(crate) fn read(resource: &Resource, object: &mut Object) -> Result<Vec<String>, DecodeError> {
    if resource.rules.custom {
        as_go_writes(object);
        let mut unknown = conform(resource, object);
        let mut inside = coerce(resource, object)?;
        // Those of the object's own metadata are found first.
        let own = inside
            .iter()
            .take_while(|path| is_of_metadata(path))
            .count();
        let behind = unknown
            .iter()
            .take_while(|path| is_of_metadata(path))
            .count();
        unknown.splice(behind..behind, inside.drain(..own));
        unknown.extend(inside);
        object.values_mut().for_each(schema::write_whole_numbers);
        return Ok(unknown);
    }
    let unknown = schema::decode(resource.types().root(), object)?;
    // Their schemas hold values of any type, which Go reads and writes again, as it does no others.
    if resource.kind == "CustomResourceDefinition" {
        if let Some(spec) = object.get_mut("spec") {
            schema::write_whole_numbers(spec);
        }
        crd::set_defaults(object);
    }
    defaults::fill(resource, object);
    autoscalers::read(resource, object);
    schema::fill_zeros(resource.types().root(), object);
    Ok(unknown)
}
