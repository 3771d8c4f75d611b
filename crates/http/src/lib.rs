//! Shared parts of a program's HTTP services: connections, hosts, authentication, pages.
//!
//! [`serve`] serves an `axum` router with bounded connections and timeouts. [`bearer`] finds the token of a request,
//! [`TokenReviews`] returns its [`User`], and [`UrlReviews`] returns what the user may access. [`Hosts`] protects
//! services without authentication against DNS rebinding. [`PAGE_FILES`] are the styles and scripts of all pages.
//!
//! | feature | adds |
//! |---|---|
//! | `server` | [`serve`], [`TokenReviews`], [`UrlReviews`], [`PAGE_FILES`]; without it there are only [`User`] and [`Rate`] |
//! | `tls` | [`serve_tls`]; enables `server` |
#![cfg_attr(
    not(feature = "tls"),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the links are to what the feature adds"
    )
)]

// In layers: a module uses modules above it only.
mod rate;
mod user;

#[cfg(feature = "server")]
mod error;

#[cfg(feature = "server")]
mod answers;
#[cfg(feature = "server")]
mod bearer;
#[cfg(feature = "server")]
mod connections;
#[cfg(feature = "server")]
mod host;

#[cfg(feature = "server")]
mod page;
#[cfg(feature = "server")]
mod reviews;
#[cfg(feature = "server")]
mod urls;

#[cfg(feature = "server")]
pub use bearer::{TOKEN_HEADER, bearer, is_same};
#[cfg(feature = "tls")]
pub use connections::serve_tls;
#[cfg(feature = "server")]
pub use connections::{LONGEST_URL, serve};
#[cfg(feature = "server")]
pub use error::AuthError;
#[cfg(feature = "server")]
pub use host::Hosts;
#[cfg(feature = "server")]
pub use page::{PAGE_FILES, PAGE_POLICY, PageFile, with_files_inside};
pub use rate::Rate;
#[cfg(feature = "server")]
pub use reviews::TokenReviews;
#[cfg(feature = "server")]
pub use urls::UrlReviews;
pub use user::User;
