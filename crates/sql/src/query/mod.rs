//! Queries of a kind: what they select, and how they are checked.
//!
//! `query` and `filter` build a query, `url` reads and writes its URL form. `plan` checks it against the fields and
//! accesses of a `scope`; SQL is generated from the plan, or `eval` evaluates it in memory. `cursor` is the end of an
//! answer, bound to the `shape` of the query.

mod cursor;
mod error;
mod eval;
mod filter;
mod plan;
mod query;
mod scope;
mod shape;
mod subjects;
mod url;

pub(crate) use cursor::Cursor;
pub use error::QueryError;
pub(crate) use eval::Others;
pub use filter::{AnyOf, Condition, Operator, Subject, associated, field, label};
pub(crate) use plan::{Check, Comparison, Plan, Summary, Target, Test, words_of};
pub(crate) use query::{Namespaces, Part};
pub use query::{PROJECT_LABEL, Query};
pub(crate) use scope::{Scope, View};
pub use url::UrlError;
