//! Objects as rows of a `Table`, which is how kubectl asks for them.
//!
//! A column says where its cells come from ([`source`]): from a JSONPath, as the `additionalPrinterColumns` of CRDs
//! do, or from a function. The columns of built-in kinds are in `builtin/columns.txt`; without the feature `printers`
//! built-in kinds have Name and Age only.

mod age;
#[cfg_attr(not(feature = "printers"), path = "builtin_off.rs")]
mod builtin;
mod column;
mod include;
mod source;
mod table;

pub(crate) use include::Include;
pub(crate) use table::Table;
