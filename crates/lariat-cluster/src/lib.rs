//! A Kubernetes API server in a crate: in memory, in process, ready at once.
//!
//! It needs no download and no privileges, keeps real resource versions and watch history, and is
//! served two ways: over loopback HTTP, for any Kubernetes client, and as a [`tower`] service, for a
//! client in the same process. Tests of controllers get a cluster each, and [`faults`] for what goes
//! wrong in production.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! use lariat_cluster::Cluster;
//!
//! let cluster = Cluster::builder().listen().start().await?;
//! assert_eq!(cluster.journal().count("watch", "pods"), 0);
//! cluster.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! What it serves today: the built-in kinds and CustomResourceDefinitions with get, list (selectors,
//! paging, versions), watch (bookmarks, initial events, expiry), create, update, merge and JSON patch,
//! delete with finalizers and propagation, status subresources, namespaces with their lifecycle, garbage
//! collection, Events that expire, legacy discovery. If wanted, nodes and workloads are
//! [simulated](Workloads): Deployments roll out, Pods become ready, Jobs complete.
//! Objects, lists and watches of only the metadata. HTTP/1.1 and HTTP/2 on one port, with TLS if wanted,
//! and gzip for large answers.
//!
//! Not served yet: server-side apply, strategic merge patch, schema validation,
//! OpenAPI, and tables of a kind's own columns. So kubectl gets, describes, labels, patches
//! (`--type=merge`) and deletes, and creates with `--validate=false`. Requests may be in protobuf, as
//! typed clients send them; answers never are. Without simulation there is no kubelet: a deleted Pod
//! that is not scheduled goes at once, one that is stays until it is deleted without grace period.
//!
//! | feature | adds |
//! |---|---|
//! | `client` | [`Cluster::client`], a kube client without a socket, and `testing`, help for tests |
//! | `sqlite` | [`ClusterBuilder::data`]: a cluster that outlives its process |
//! | `tls` | [`ClusterBuilder::tls`]: HTTPS, with rustls and ring |
//!
//! [`tower`]: https://docs.rs/tower

mod builder;
mod cluster;

mod access;
mod api;
mod control;
mod defaults;
mod kinds;
mod managed;
#[cfg_attr(not(feature = "sqlite"), path = "persist/off.rs")]
mod persist;
mod store;
mod structural;
mod verbs;

pub mod faults;
pub mod journal;
#[cfg(feature = "client")]
pub mod testing;

mod load;

mod clock;
mod names;
mod schema;
mod server;
mod time;
mod workloads;

pub use access::User;
pub use api::body::ResponseBody;
pub use api::service::ClusterService;
pub use builder::ClusterBuilder;
pub use cluster::Cluster;
pub use control::{Control, SimulatedWorkloads};
pub use faults::Faults;
pub use journal::{Journal, Request};
pub use load::{Load, LoadError, Loaded};
pub use store::Snapshot;
pub use time::Time;
pub use workloads::Workloads;
