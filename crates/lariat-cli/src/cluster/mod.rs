//! `lariat cluster`: a cluster from its start to its end.

mod options;
mod serve;
mod token;

pub(crate) use options::{Options, TOKEN};
pub(crate) use serve::run;
#[cfg(test)]
pub(crate) use token::Token;
