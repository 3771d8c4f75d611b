//! A Kubernetes API server in a crate: in memory, in process, ready at once.
//!
//! It needs no download and no privileges, keeps real resource versions and watch history, and is
//! served two ways: over loopback HTTP, for any Kubernetes client, and as a [`tower`] service, for a
//! client in the same process. Each test of a controller can start its own, and
//! inject [`faults`] as they occur in production.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! use lariat::cluster::Cluster;
//!
//! let cluster = Cluster::builder().listen().start().await?;
//! assert_eq!(cluster.journal().count("watch", "pods"), 0);
//! cluster.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! It serves what clients of Kubernetes rely on, with the answers of kube-apiserver in the version that
//! `/version` says: the built-in kinds and CustomResourceDefinitions (structural schemas, defaults, CEL,
//! versions); lists and watches with their versions, pages, bookmarks and expiries; JSON, merge and
//! strategic merge patches and server-side apply; subresources; tables, aggregated discovery and OpenAPI
//! for kubectl; JSON, YAML and protobuf bodies; garbage collection and the lifecycle of namespaces.
//! `docs/conformance.md` in the repository says how that is checked, and what differs.
//!
//! On request it does more: nodes and workloads are [simulated](Workloads), so that Deployments roll out,
//! Pods become ready and Jobs complete; it authenticates by tokens, or authorizes by RBAC; it is filled with
//! [realistic objects](Load); it [outlives its process](ClusterBuilder::data); its [journal], its [`Inspector`] and its
//! [`Snapshot`]s serve tests. Nothing runs in its Pods: there are no logs and no `exec`. Without
//! simulation there is no kubelet either: a deleted Pod that is scheduled stays until its deletion is
//! forced.
//!
//! | feature | adds |
//! |---|---|
//! | `client` | [`Cluster::client`], a kube client without a socket, and `testing`, help for tests |
//! | `workloads` | [`Workloads`]: simulated nodes, scheduler, kubelets and controllers of workloads |
//! | `load` | [`Load`]: realistic objects in any number |
//! | `printers` | kubectl's columns of built-in kinds; without it they have Name and Age |
//! | `descriptions` | what `kubectl explain` says of built-in kinds, and descriptions of columns |
//! | `protobuf` | requests and answers in protobuf; without it requests are answered 415, and answers are in JSON |
//! | `sqlite` | [`ClusterBuilder::data`]: a cluster that outlives its process |
//! | `webhooks` | admission and conversion webhooks are called; without it they are stored, without effect |
//! | `signatures` | tokens of service accounts are signed, and signatures of requests for certificates checked, with ring |
//! | `tls` | [`ClusterBuilder::tls`]: HTTPS, with rustls and ring; it brings `signatures` |
//!
//! None is on by default. What the façade `lariat` calls `cluster` has the first three.
//!
//! [`tower`]: https://docs.rs/tower

mod cluster;

mod api;

mod control;
mod verbs;

mod access;
mod admission;
mod conversion;
mod fault;
mod idle_timeout;
mod open_watches;
mod printers;
mod registrations;
mod rules;
mod server;
mod status;
mod webhooks;
mod wire;

#[cfg_attr(not(feature = "sqlite"), path = "persist/off.rs")]
mod persist;
mod store;

pub mod faults;
pub mod journal;
#[cfg(feature = "client")]
pub mod testing;

mod bootstrap;
#[cfg(feature = "load")]
mod load;

mod clock;
#[cfg_attr(not(feature = "descriptions"), path = "descriptions/off.rs")]
mod descriptions;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod random;
mod strategy;
mod switches;
mod time;
#[cfg_attr(not(feature = "workloads"), path = "workloads/off.rs")]
mod workloads;

pub use access::User;
pub use api::service::ClusterService;
pub use cluster::{Cluster, ClusterBuilder, Commits, Inspector, ResourceCount};
pub use control::Control;
#[cfg(feature = "workloads")]
pub use control::SimulatedWorkloads;
pub use faults::Faults;
pub use journal::{Journal, RecordedRequest};
#[cfg(feature = "load")]
pub use load::{Load, LoadError, Loaded};
pub use open_watches::OpenWatch;
pub use store::{Commit, Snapshot, StoredObject};
pub use time::Time;
pub use wire::body::ResponseBody;
#[cfg(feature = "workloads")]
pub use workloads::Workloads;

#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../README.md")]
mod readme {}
