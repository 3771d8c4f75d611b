//! What every request works on.

use std::sync::atomic::AtomicU64;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::control::{Settings, Switches};
use crate::faults::Rules;
use crate::journal::Journal;
use crate::kinds::Kinds;
use crate::names::Names;
use crate::store::Store;
use crate::time::Time;
use crate::workloads::Workloads;

/// The state of one cluster.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) clock: Clock,
    pub(crate) time: Time,
    /// Which controllers are switched off.
    pub(crate) switches: Switches,
    /// How nodes and workloads are simulated, if they are.
    pub(crate) workloads: Option<Workloads>,
    pub(crate) names: Names,
    pub(crate) journal: Journal,
    pub(crate) faults: Rules,
    /// How many connections were accepted.
    pub(crate) connections: AtomicU64,
    /// Ends everything that runs for the cluster, open watches included.
    pub(crate) stopped: CancellationToken,
}

impl Server {
    pub(crate) fn new(history: usize, seed: Option<u64>, control: Settings) -> Self {
        let store = Store::new(history);
        Self {
            kinds: Kinds::new(&store),
            store,
            clock: Clock::new(),
            switches: Switches::new(&control),
            time: control.time,
            workloads: control.workloads,
            names: Names::new(seed),
            journal: Journal::default(),
            faults: Rules::new(seed),
            connections: AtomicU64::new(0),
            stopped: CancellationToken::new(),
        }
    }
}
