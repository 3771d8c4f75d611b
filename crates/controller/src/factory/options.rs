//! The options of a factory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{ContentFilter, SharedClientFactory};
use lariat_core::Gvk;
use lariat_lease::{Elector, Leadership, LeaseError, RingMember, Shards};

use crate::controller::ControllerOptions;
use crate::error::StartError;

/// The default sync timeout of a start: controller-runtime's `CacheSyncTimeout`.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// The default grace period of a stop: controller-runtime's `GracefulShutdownTimeout`.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

/// The default time for which a handler may block its thread until it is logged.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);

/// The options of a factory.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) sync_timeout: Duration,
    pub(super) grace_period: Duration,
    /// How long a poll of a handler may last until it is logged.
    pub(super) blocked_after: Duration,
    pub(super) default: ControllerOptions,
    pub(super) kinds: BTreeMap<Gvk, ControllerOptions>,
    pub(super) election: Option<Election>,
}

/// How a factory shares work with other replicas.
#[derive(Debug, Clone)]
pub(super) enum Election {
    /// One replica leads.
    Leader(Arc<Elector>),
    /// Each replica has a share.
    Ring(Arc<RingMember>),
    /// The configuration is invalid; every start fails with this error.
    Invalid(LeaseError),
}

impl Election {
    /// Returns the same election, with connections of its own that this runtime drives.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub(super) fn through(&self, clients: &SharedClientFactory) -> Self {
        match self {
            Self::Leader(elector) => {
                Self::Leader(Arc::new(elector.through(clients.separate_client())))
            }
            Self::Ring(member) => Self::Ring(Arc::new(member.through(clients.separate_client()))),
            Self::Invalid(_) => self.clone(),
        }
    }

    /// Returns namespace and name of the lease, for errors.
    pub(super) fn lease(&self) -> String {
        match self {
            Self::Leader(elector) => elector.leadership().lease().to_owned(),
            Self::Ring(member) => member.leadership().lease().to_owned(),
            Self::Invalid(_) => String::new(),
        }
    }

    /// Returns the leadership of this process; none if the election is misconfigured.
    pub(super) fn leadership(&self) -> Option<Leadership> {
        match self {
            Self::Leader(elector) => Some(elector.leadership()),
            Self::Ring(member) => Some(member.leadership()),
            Self::Invalid(_) => None,
        }
    }

    /// Resets the leadership to standby, before a run waits for it.
    pub(super) fn standby(&self) {
        match self {
            Self::Leader(elector) => elector.standby(),
            Self::Ring(member) => member.standby(),
            Self::Invalid(_) => {}
        }
    }
}

impl Options {
    /// Returns the leadership of this process; none without an election.
    pub(super) fn leadership(&self) -> Option<Leadership> {
        self.election.as_ref()?.leadership()
    }

    /// Returns the shards of this process; none without a ring.
    pub(super) fn shards(&self) -> Option<Shards> {
        match &self.election {
            Some(Election::Ring(member)) => Some(member.shards()),
            _ => None,
        }
    }

    /// Returns the options of a kind, completed from the defaults.
    ///
    /// `workers` is not completed: a kind's own number overrides the argument of `start`, which overrides the default.
    pub(super) fn of(&self, gvk: &Gvk) -> ControllerOptions {
        let own = self.kinds.get(gvk).cloned().unwrap_or_default();
        let workers = own.workers;
        let mut options = own.or(&self.default);
        options.workers = workers;
        options.elected(self.leadership(), self.shards())
    }

    /// Returns the filter of cached content.
    ///
    /// It keeps all content of the kinds that every replica handles, and the share of this process of all others.
    pub(super) fn content_of(&self, shards: Shards) -> ContentFilter {
        let default = self.default.is_led_or(true);
        let differs = |options: &ControllerOptions| options.is_led_or(default) != default;
        // A set of exceptions rather than of members: kinds without own options follow the default.
        let other: BTreeSet<Gvk> = self
            .kinds
            .iter()
            .filter(|(_, options)| differs(options))
            .map(|(gvk, _)| gvk.clone())
            .collect();
        let is_led = move |gvk: &Gvk| default != other.contains(gvk);
        ContentFilter::new(shards.content_changes(), move |gvk, object| {
            !is_led(gvk) || shards.caches_content(gvk, object)
        })
    }

    pub(super) fn default_workers(&self) -> Option<usize> {
        self.default.workers
    }

    /// Checks that no option sets zero workers.
    pub(super) fn check_workers(&self, started_with: Option<usize>) -> Result<(), StartError> {
        if started_with.or(self.default.workers) == Some(0) {
            return Err(StartError::NoWorkers { gvk: None });
        }
        let mut kinds = self.kinds.iter();
        match kinds.find(|(_, options)| options.workers == Some(0)) {
            Some((gvk, _)) => Err(StartError::NoWorkers {
                gvk: Some(gvk.clone()),
            }),
            None => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sync_timeout: SYNC_TIMEOUT,
            grace_period: GRACE_PERIOD,
            blocked_after: BLOCKED_AFTER,
            default: ControllerOptions::default(),
            kinds: BTreeMap::new(),
            election: None,
        }
    }
}
