//! The check of types in expressions in CEL, the Common Expression Language.
//!
//! An expression is parsed with its positions, macros are written out, and each part gets a type. What the server's
//! compiler refuses is refused here in its words; evaluating is the interpreter's. `cost` estimates what evaluating an
//! expression costs at most.
//!
//! It should go to cel and kube-cel, which parse and evaluate and check nothing before: `docs/upstream.md` has the
//! interface, and what is missing there.
//!
//! Source: `github.com/google/cel-go/checker`, and the declarations in `k8s.io/apiserver/pkg/cel/library`.

mod admission;
mod aggregates;
mod calls;
mod check;
mod cost;
mod environment;
mod facts;
mod functions;
mod literals;
mod loops;
mod macros;
mod object;
mod parse;
mod source;
mod token;
mod tree;
mod types;
mod unify;

pub(crate) use admission::{namespace, request};
pub(crate) use check::{Checked, check, check_with_cost};
pub(crate) use cost::{Dimensions, Variables};
pub(crate) use environment::{Environment, patch};
pub(crate) use functions::quantity;
pub(crate) use object::Object;
pub(crate) use token::{Extent, extent, is_reserved};
pub(crate) use types::Type;
