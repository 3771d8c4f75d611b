//! The indexed fields of a kind: their paths, types and values.

mod error;
mod field;
mod path;
mod quantity;
mod value;

pub use error::ValueError;
pub use field::Field;
pub use path::{Path, PathError};
pub use quantity::Quantity;
pub(crate) use value::natural_key;
pub use value::{FieldType, Value};
