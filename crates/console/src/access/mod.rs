//! Access to the console: users, permissions, and the origin of a request.

mod access;
mod origin;

pub(crate) use access::{Access, Denied, Permission};
pub(crate) use origin::is_own_page;
