//! Shared informers: one watch and one cache per Kubernetes kind, readable as any type.
//!
//! ```text
//! API server ──list, watch──▶ Reflector ──deltas──▶ Store ──changes──▶ Subscribers
//!      ▲                                              ▲
//!      └── requests ── SharedClientFactory ──own writes┘
//! ```
//!
//! A [`SharedCacheFactory`] returns one [`Informer`] per kind. Its [`Store`] contains raw objects: compact metadata,
//! and the JSON without `managedFields`. A [`Cache`] reads them as a type, as kube's `DynamicObject`, or as
//! [`Metadata`] without decoding. All views read the same bytes, and readers share decoded values.
//!
//! The reflector lists and watches the kind and applies what it receives to the store. The clients of a
//! [`SharedClientFactory`] apply the answers to writes too, so a program reads its own writes once they are answered,
//! in caches that are known to select the object. Every change of the store is published to [`Subscriber`]s, in the
//! order in which the store applied it.
//!
//! ```no_run
//! use std::time::Duration;
//! use k8s_openapi::api::core::v1::Pod;
//! use lariat::cache::SharedCacheFactory;
//! use lariat::{Gvk, ObjectKey};
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedCacheFactory::new(client);
//! let pods = factory.for_kind(Gvk::new("", "v1", "Pod")).cache::<Pod>();
//! factory.start();
//! factory.wait_for_sync(Duration::from_secs(30)).await?;
//! let pod = pods.get(&ObjectKey::namespaced("default", "web-0"))?;
//! # let _ = pod; Ok(()) }
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `rustls-tls` | TLS, and with it HTTP/2, by rustls and ring |
//! | `kube-runtime` | `Informer::watcher_events` and `Informer::feed`, for code written for kube-rs |

mod client;
mod mapper;

mod content_filter;
mod selection;
mod transform;

mod store;

mod publish;
mod reflector;

mod cache;
mod informer;
#[cfg(feature = "kube-runtime")]
mod kube_runtime;
mod view;

mod error;
mod factory;
mod options;
mod warm;

pub use cache::Cache;
pub use client::{
    FollowedBy, GateDecision, KindClient, PendingWrite, SharedClientFactory, WriteGate,
    WriteReceipt, WriteResult, WriteVerb,
};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::reflector::fuzzing::*;
}

pub use content_filter::ContentFilter;
pub use error::{SyncError, Unsynced};
pub use factory::{CacheFactoryBuilder, SharedCacheFactory};
pub use informer::{Changes, Informer, LoadError};
/// Who requests say they come from, and how they ended.
#[doc(no_inline)]
pub use lariat_client::{ClientIdentity, IdentityError, RequestCount, RequestStatus, RequestTimes};
pub use lariat_seal::Sealing;
pub use mapper::{MapperError, RestMapper, ServedKinds};
pub use options::{InitialList, KindOptions, MissingKind};
pub use publish::{
    Blind, ContentHold, KindStatus, OwnWrite, Phase, Reconnect, Subscriber, Subscription,
};
pub use reflector::{Source, SourceBody, SourceError, SourceRequest};
pub use selection::Selection;
pub use store::{
    CachedObject, Change, DecodeError, IndexError, ObjectJson, Query, Snapshot, Storage, Store,
};
pub use transform::Transform;
pub use view::{Metadata, View};
pub use warm::{WarmIdentity, WarmObjects, WarmSource, WarmSourceError};
