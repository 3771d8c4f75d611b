//! Operators over a set of clusters that come and go while they run.
//!
//! A [`Fleet`] has an operator of its own for each cluster: with its own client, factory, watches, caches and queues. So
//! a cluster that is unreachable delays nothing in the others, and a cluster that leaves takes everything of it along.
//! Clusters come from [sources](ClusterSource) (a directory of kubeconfigs, Secrets, Cluster API) or from
//! [code](Fleet::add).
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use lariat_controller::{HandlerResult, Outcome};
//! use lariat_fleet::{ClusterSource, Fleet, Member};
//! use lariat_operator::Reconcile;
//!
//! /// Registers the reconcilers of one cluster.
//! fn register(member: &Member) -> Result<(), lariat_fleet::SetupError> {
//!     let cluster = member.name().clone();
//!     let pods = member.operator().factory().for_object::<Pod>();
//!     member.operator().reconciler("log", &pods).register(move |cx: Reconcile<Pod>| {
//!         println!("{cluster}: {}", cx.key());
//!         async { HandlerResult::Ok(Outcome::done()) }
//!     })?;
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), lariat_fleet::FleetError> {
//! let fleet = Fleet::builder("pod-logger", register)
//!     .source(ClusterSource::directory("/etc/clusters"))
//!     .build();
//! fleet.run(5, std::future::pending::<()>()).await
//! # }
//! ```

mod error;
mod key;
mod status;
mod wanted;

mod source;

mod fleet;
mod life;
mod run;

pub use error::{FleetError, SetupError};
pub use fleet::{Fleet, FleetBuilder, Member, WeakFleet};
pub use key::ClusterKey;
pub use source::ClusterSource;
pub use status::{MemberPhase, MemberStatus};
