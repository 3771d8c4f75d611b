//! Operators over a set of clusters that join and leave at run time.
//!
//! A [`Fleet`] has one [operator](Member::operator) per cluster, each with its own client, factory, watches, caches and
//! queues. So an unreachable cluster delays nothing in the others, and a cluster that leaves takes all of its state
//! along.
//!
//! Clusters come from [sources](ClusterSource), which are a directory of kubeconfigs, Secrets, or Cluster API, or from
//! [code](Fleet::add). When a cluster joins, the fleet connects to it, calls the function that registers its
//! reconcilers, and starts its operator. [`Fleet::status`] shows the state of each cluster.
//!
//! **Experimental:** this crate may change more than the others, and these are missing:
//!
//! - A fleet whose clusters all come from a directory or from code is fenced only if it is
//!   [fenced by](FleetBuilder::fenced_by) a factory with a leader election; otherwise run one replica. Requests that
//!   have left when the lease is lost are not called back.
//! - Clusters are compared by the uid of their namespace `kube-system` only if their credentials may get it.
//! - A hub whose replicas divide keys is refused.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use lariat::fleet::{ClusterSource, Fleet, Member};
//! use lariat::{HandlerResult, Outcome, Reconcile};
//!
//! /// Registers the reconcilers of one cluster.
//! fn register(member: &Member) -> Result<(), lariat::fleet::SetupError> {
//!     let cluster = member.name().clone();
//!     let pods = member.operator().factory().for_object::<Pod>();
//!     member.operator().reconciler("log", &pods).register(move |cx: Reconcile<Pod>| {
//!         println!("{cluster}: {}", cx.key());
//!         async { HandlerResult::Ok(Outcome::done()) }
//!     })?;
//!     Ok(())
//! }
//!
//! # async fn example() -> Result<(), lariat::fleet::FleetError> {
//! let fleet = Fleet::builder("pod-logger", register)
//!     .source(ClusterSource::directory("/etc/clusters"))
//!     .build();
//! fleet.run(5, std::future::pending::<()>()).await
//! # }
//! ```

mod error;
mod identity;
mod key;
mod status;
mod wanted;

mod source;

mod fleet;

mod builder;
mod terms;

mod life;
mod run;

pub use builder::FleetBuilder;
pub use error::{FleetError, SetupError};
pub use fleet::{Fleet, Member, WeakFleet};
pub use key::ClusterKey;
pub use source::ClusterSource;
pub use status::{MemberPhase, MemberStatus};
