//! The URL form of a query: the part after the question mark.

mod error;
#[cfg(test)]
mod properties;
mod read;
mod url;
mod write;

pub use error::UrlError;
