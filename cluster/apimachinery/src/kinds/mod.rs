//! The registry of kinds: the built-in ones, and those of CustomResourceDefinitions.

mod builtin;
mod catalog;
mod custom;
mod machinery;
mod registry;
mod resource;
mod row;
mod version;

pub use catalog::{Catalog, OpenApiDocument};
pub use custom::{Definition, Names, Spec, resources_of};
pub use registry::Kinds;
pub use resource::{Column, Conversion, Generation, Resource, Scale, TableId, qualified};
