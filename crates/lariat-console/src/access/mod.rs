//! Who may use the console.

mod access;
mod origin;

pub(crate) use access::{Access, Denied, Permission};
pub(crate) use origin::is_own_page;
