//! The rules of a Kubernetes API server for objects, as functions on JSON values.
//!
//! Everything here is a function of values: no server, no runtime and no HTTP are needed. `lariat-cluster` is a server
//! made of it; programs that edit manifests, admission webhooks and tests can use it alone.
//!
//! ```
//! use lariat_apimachinery::managed::{ApplyError, Write};
//! use lariat_apimachinery::object::Object;
//! use lariat_apimachinery::schema;
//! use serde_json::json;
//!
//! let schema = schema::builtin("v1", "ConfigMap").expect("it is built in");
//! let apply = |manager, live: Option<&Object>, data| {
//!     let applied = Object::from_iter([("data".to_owned(), data)]);
//!     let write = Write::new(&schema, "v1", manager, "2026-01-01T00:00:00Z");
//!     write.apply(live, &applied, false)
//! };
//! let live = apply("ann", None, json!({"color": "red"}))?;
//! let live = apply("bob", Some(&live), json!({"size": "3"}))?;
//! assert_eq!(live["data"], json!({"color": "red", "size": "3"}));
//!
//! // A field that ann owns cannot be changed by bob without force.
//! let conflict = apply("bob", Some(&live), json!({"color": "blue"})).unwrap_err();
//! assert_eq!(
//!     conflict.to_string(),
//!     r#"Apply failed with 1 conflict: conflict with "ann": .data.color"#
//! );
//! // A field that ann no longer applies is removed.
//! let live = apply("ann", Some(&live), json!({}))?;
//! assert_eq!(live["data"], json!({"size": "3"}));
//! # Ok::<(), ApplyError>(())
//! ```
//!
//! | module | has |
//! |---|---|
//! | [`schema`] | the types of built-in and defined kinds: decoding, unknown fields, OpenAPI |
//! | [`structural`] | the schemas of CRDs: pruning, defaults, validation, rules in CEL, JSONPath |
//! | [`managed`] | who owns which field, and server-side apply |
//! | [`patch`] | JSON patch, JSON merge patch and strategic merge patch |
//! | [`kinds`] | the registry of kinds: built-in ones, and those of CRDs |
//! | [`defaults`] | the defaults that the API server sets for absent fields |
//! | [`crd`] | validation of CRDs |
//! | [`admission`] | webhooks and policies: what they apply to, reviews, expressions |
//! | [`usage`] | what objects use: quotas and limit ranges |
//! | [`validation`] | validation of objects, kind by kind; with the feature `signatures`, those of requests for certificates too |
//! | `protobuf` | bodies in protobuf, read by the same table of types; with the feature `protobuf` |
//! | [`names`], [`quantity`], [`nesting`] | names, amounts, and how deep documents are |
//! | [`client_config`] | the `clientConfig` of a webhook |
//! | [`object`], [`selector`], [`cause`] | an object, its labels, and what is wrong with one of its fields |
//! | [`go_json`], [`go_text`], [`go_time`] | errors of Go's JSON reader, values as Go prints them, and times as it reads them |
//!
//! Answers and texts are those of kube-apiserver in the version [`KUBERNETES`], checked against recordings of it; see
//! `docs/conformance.md` in the repository.

mod checks;
mod expressions;
pub mod schema;
pub mod structural;

pub mod managed;
pub mod patch;

pub mod kinds;

pub mod admission;
pub mod crd;
pub mod defaults;
pub mod usage;
pub mod validation;

#[cfg(feature = "protobuf")]
pub mod protobuf;

pub mod cause;
pub mod client_config;
pub mod names;
pub mod nesting;
pub mod object;
pub mod quantity;
pub mod selector;

pub mod go_duration;
pub mod go_json;
mod go_regex;
pub mod go_text;
pub mod go_time;
mod go_url;

mod version;

pub use version::KUBERNETES;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
