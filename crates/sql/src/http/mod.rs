//! The cache over HTTP: read-only, as a browsable API and a page.
//!
//! | route | answers |
//! |---|---|
//! | `GET /` | a page to browse the kinds |
//! | `GET /v1/kinds` | the kinds, their fields and their state |
//! | `GET /v1/{group}/{version}/{kind}` | objects by the [URL form](crate::Query::from_url) of a query; the core group is `core` |
//! | `GET /v1/{group}/{version}/{kind}?watch=true` | their changes, as server-sent events |
//! | `GET /v1/{group}/{version}/{kind}/{namespace}/{name}` | one object; without the namespace if its kind has none |
//! | `GET /openapi.json` | a description of all this as OpenAPI 3.1 |
//!
//! [`authorize`](SqlService::authorize) or [`visible`](SqlService::visible) decide what a user sees of a kind. A label
//! that selects namespaces, as in `projectsornamespaces`, matches only namespaces that the user may see as objects, so
//! labels of others cannot be guessed.
//!
//! All routes except the page require a user, unless the service is [open to everyone](SqlService::open_to_everyone).
//! Errors are `Status` objects, as the API server returns them.
//!
//! **Lists** are JSON with `revision`, `total`, `continue`, `summaries` and `objects`. A query without `pagesize` and
//! `limit` returns the first [1,000 objects](SqlService::default_page); `continue` is the cursor of the next ones.
//! `total` is null if there are more objects than that and the query has no `pagesize`. A list ends early, with
//! `continue`, when its objects have [32 MiB](SqlService::largest_list); a page of a `pagesize` is refused then.
//! Answers that clients have not read yet are [bounded](SqlService::held_bytes) in bytes, in all and per user; further
//! requests get 429.
//!
//! Responses have an `ETag`; a request with the same `If-None-Match` gets 304. If the user may see the whole kind, and
//! it has not changed, no query is needed for that.
//!
//! **Revisions.** A user who may not see all objects of a kind gets revisions that are encrypted, differ in each
//! answer, and do not show when other objects change. They are valid in this process; another one reads only the
//! resource version in front, the highest one that the user has seen. A request that waits for a resource version
//! (`revision`) still shows that the kind has reached it, as with the API server.
//!
//! **Watches** send `{"type": "ADDED", "object": …}` for each change; the other types are `MODIFIED`, `DELETED` and
//! `ERROR`. Only the conditions of the query apply, and `revision` sets the start. The id of an event is a revision. A
//! client that sends it as `Last-Event-ID` resumes there, and gets 410 if later changes are no longer kept; it must
//! list again then. A client that gets an `ERROR`, whose object is a `Status`, must list again too. A watch ends after
//! [a minute](SqlService::longest_watch), unless the service is open to everyone, so that clients reconnect and are
//! authenticated again.

mod auth;
mod authorize;
mod body;
mod bytes;
mod error;
mod etag;
mod events;
mod openapi;
mod page;
mod projects;
mod respond;
mod revisions;
mod room;
mod routes;
mod service;
mod shared;
mod status;
mod target;
mod turns;
mod visible;

pub use error::VisibleError;
pub use lariat_http::{AuthError, TokenReviews};
pub use service::SqlService;
