//! The domain types that all parts of Lariat use. No tokio and no I/O.
//!
//! In the order of reading:
//!
//! - [`ObjectKey`] identifies an object within its kind; [`Gvk`] and [`ResourceKind`] identify the kind.
//! - [`ResourceVersion`] orders the states of an object, and [`Uid`] tells an object from a later one with the same
//!   key.
//! - [`RawObject`] is one state of an object as the API server sent it: compact metadata, and the JSON as bytes. A
//!   [`Scan`] reads the metadata only.
//! - [`Labels`], [`LabelSelector`] and [`FieldSelector`] select objects.
//! - [`Cause`] is the reason why a key was enqueued.
//! - [`clock`] is the wall clock, which simulations replace.
//!
//! ```
//! use lariat::{Gvk, ObjectKey, RawObject};
//!
//! let json = br#"{"apiVersion":"v1","kind":"Pod",
//!     "metadata":{"name":"web-0","namespace":"shop","resourceVersion":"7"}}"#;
//! let pod = RawObject::parse(json, &Gvk::new("", "v1", "Pod"))?;
//! assert_eq!(pod.key(), &ObjectKey::namespaced("shop", "web-0"));
//! # Ok::<(), lariat::core::RawObjectError>(())
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `kube` | conversions from kube's `GroupVersionKind` and to its `ApiResource` |
//! | `yaml` | the module `yaml`: YAML as kubectl reads and writes it |

mod credentials;
mod diff;
mod dry_run;
mod fence;
mod hash;
mod json;
mod key;
mod kind;
mod operation;
mod segment;
mod strict;
mod version;

mod intern;
mod labels;
mod raw;
mod selector;

mod cause;
mod causes;
mod table_size;
mod text;

pub mod clock;
#[cfg(feature = "yaml")]
pub mod yaml;

pub use cause::{Cause, CausingRun, RelatedChange, Subject};
pub use causes::Causes;
pub use credentials::without_credentials;
pub use diff::{changed_fields, comparable, compare_fields, field_path};
pub use dry_run::is_dry_run;
pub use fence::{Fence, while_open};
pub use hash::{FNV_OFFSET, fnv1a, fnv1a_32};
pub use json::{JsonCursor, UnexpectedJson};
pub use key::{ObjectKey, ParseKeyError};
pub use kind::{Gvk, ParseGvkError, ResourceKind, Scope};
pub use labels::Labels;
pub use operation::Operation;
pub use raw::{
    Interner, ManagedFields, ObjectMetadata, OwnerRef, RawObject, RawObjectError, Scan, Uid,
};
pub use segment::{name_of_segment, not_a_name, path_segment};
pub use selector::{FieldSelector, LabelSelector, SelectorError};
pub use strict::StrictObject;
pub use table_size::TableSize;
pub use text::{describe, without_values};
pub use version::ResourceVersion;
