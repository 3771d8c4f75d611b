//! What every request works on.

use std::sync::atomic::AtomicU64;

use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Clock;
use crate::faults::Rules;
use crate::journal::Journal;
use crate::kinds::Kinds;
use crate::names::Names;
use crate::store::Store;

/// The state of one cluster.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    pub(crate) journal: Journal,
    pub(crate) faults: Rules,
    pub(crate) access: Access,
    /// How many connections were accepted.
    pub(crate) connections: AtomicU64,
    /// Ends everything that runs for the cluster, open watches included.
    pub(crate) stopped: CancellationToken,
}

impl Server {
    pub(crate) fn new(history: usize, seed: Option<u64>, access: Access) -> Self {
        let store = Store::new(history);
        Self {
            kinds: Kinds::new(&store),
            store,
            clock: Clock::new(),
            names: Names::new(seed),
            journal: Journal::default(),
            faults: Rules::new(seed),
            access,
            connections: AtomicU64::new(0),
            stopped: CancellationToken::new(),
        }
    }
}
