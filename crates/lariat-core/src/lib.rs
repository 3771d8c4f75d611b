//! The domain types that all parts of Lariat use: no tokio, no I/O.
//!
//! [`ObjectKey`] identifies an object within its kind, [`Gvk`] and [`ResourceKind`] identify the kind, and
//! [`ResourceVersion`] orders the states of an object. [`RawObject`] is one such state as the API server sent it: the
//! metadata a controller needs in compact form, and the rest as bytes. [`Cause`] is the reason why a key was enqueued.
//! [`clock`] is the wall clock, for times that outlive a process.
//!
//! ```
//! use lariat_core::{Gvk, ObjectKey, RawObject};
//!
//! let json = br#"{"apiVersion":"v1","kind":"Pod",
//!     "metadata":{"name":"web-0","namespace":"shop","resourceVersion":"7"}}"#;
//! let pod = RawObject::parse(json, &Gvk::new("", "v1", "Pod"))?;
//! assert_eq!(pod.key(), &ObjectKey::namespaced("shop", "web-0"));
//! # Ok::<(), lariat_core::RawObjectError>(())
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `kube` | conversions from kube's `GroupVersionKind` and `ApiResource` |

mod credentials;
mod diff;
mod json;
mod key;
mod kind;
mod segment;
mod strict;
mod version;

mod intern;
mod labels;
mod raw;
mod selector;

mod cause;
mod remembered;
mod text;

pub mod clock;

pub use cause::{Cause, Causes, CausingRun, RelatedChange, Subject};
pub use credentials::without_credentials;
pub use diff::{changed_fields, comparable, compare_fields, field_path};
pub use json::{JsonCursor, Unclear};
pub use key::{ObjectKey, ParseKeyError};
pub use kind::{Gvk, ParseGvkError, ResourceKind, Scope};
pub use labels::Labels;
pub use raw::{
    Interner, ManagedFields, ObjectMetadata, OwnerRef, RawObject, RawObjectError, Scan, Uid,
};
pub use remembered::Remembered;
pub use segment::{name_of_segment, not_a_name, path_segment};
pub use selector::{FieldSelector, LabelSelector, SelectorError};
pub use strict::StrictObject;
pub use text::{describe, without_values};
pub use version::ResourceVersion;
