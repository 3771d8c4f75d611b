//! The open connections of a listener, and the one that ends when a new one needs its place.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many connections a listener keeps open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capacity {
    /// The number of connections for any request.
    pub(super) requests: usize,
    /// The number of further connections, which are for probes only.
    pub(super) probes: usize,
}

/// The requests that a connection may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Any request.
    Any,
    /// One request of a probe; all other connections have requests in progress.
    Probe,
}

/// The open connections of a listener.
///
/// A new connection takes a free place. Without one, the connection ends that has been idle for the longest time,
/// among those of the peer that has the most connections: whoever opens many connections loses them first. If none is
/// idle, the new connection is for probes only; if there is no place for those either, it waits.
#[derive(Debug)]
pub(super) struct Table {
    capacity: Capacity,
    open: Mutex<Open>,
    /// Notified when a place may have become free.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    /// The number of the next connection.
    next: u64,
    /// In the order in which they were accepted.
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    admitted: Admitted,
    /// Requests in progress: from their header until the end of their response.
    requests: usize,
    /// When the last request ended, or when the connection was accepted.
    idle_since: Instant,
    close: CancellationToken,
}

/// The place of a connection in the table, which its last clone gives back.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<Held>);

#[derive(Debug)]
struct Held {
    number: u64,
    admitted: Admitted,
    close: CancellationToken,
    table: Arc<Table>,
}

/// A request in progress; while there is one, its connection is not idle.
#[derive(Debug)]
pub(super) struct InProgress(Place);

impl Table {
    pub(super) fn new(capacity: Capacity) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            open: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Waits until a connection can be admitted.
    ///
    /// Before it is accepted: further clients wait in the kernel's queue, where they cost this process nothing.
    pub(super) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            if self.open.lock().next_place(self.capacity).is_some() {
                return;
            }
            freed.await;
        }
    }

    /// Admits a connection; returns nothing if there is no room.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let close = CancellationToken::new();
        let mut open = self.open.lock();
        let (admitted, ended) = open.next_place(self.capacity)?;
        let ended = ended.and_then(|number| open.connections.remove(&number));
        let number = open.next;
        open.next += 1;
        let connection = Connection {
            peer,
            admitted,
            requests: 0,
            idle_since: Instant::now(),
            close: close.clone(),
        };
        open.connections.insert(number, connection);
        drop(open);
        if let Some(ended) = ended {
            ended.close.cancel();
        }
        let table = Arc::clone(self);
        Some(Place(Arc::new(Held {
            number,
            admitted,
            close,
            table,
        })))
    }
}

impl Open {
    /// Returns the place of the next connection, and the connection that ends for it.
    fn next_place(&self, capacity: Capacity) -> Option<(Admitted, Option<u64>)> {
        let places = [
            (Admitted::Any, capacity.requests),
            (Admitted::Probe, capacity.probes),
        ];
        places.into_iter().find_map(|(admitted, limit)| {
            if self.count(admitted) < limit {
                return Some((admitted, None));
            }
            Some((admitted, Some(self.longest_idle(admitted)?)))
        })
    }

    fn count(&self, admitted: Admitted) -> usize {
        let open = self.connections.values();
        open.filter(|it| it.admitted == admitted).count()
    }

    /// Returns the connection that ends for a new one, if one is idle.
    fn longest_idle(&self, admitted: Admitted) -> Option<u64> {
        let mut of_peer: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.connections.values() {
            *of_peer.entry(connection.peer).or_default() += 1;
        }
        let idle = self
            .connections
            .iter()
            .filter(|(_, it)| it.admitted == admitted && it.requests == 0);
        let last = idle.max_by(|(_, one), (_, other)| {
            let peers = of_peer[&one.peer].cmp(&of_peer[&other.peer]);
            peers.then(other.idle_since.cmp(&one.idle_since))
        });
        last.map(|(&number, _)| number)
    }
}

impl Place {
    /// Returns which requests the connection may send.
    pub(super) fn admitted(&self) -> Admitted {
        self.0.admitted
    }

    /// Serves the connection until it ends, or until a new connection needs its place.
    pub(super) async fn hold(&self, serving: impl Future<Output = ()>) {
        self.0.close.run_until_cancelled(serving).await;
    }

    /// Notes that a request has begun, until the returned value is dropped.
    pub(super) fn begin(&self) -> InProgress {
        self.change(|connection| connection.requests += 1);
        InProgress(self.clone())
    }

    fn change(&self, change: impl FnOnce(&mut Connection)) {
        let mut open = self.0.table.open.lock();
        if let Some(connection) = open.connections.get_mut(&self.0.number) {
            change(connection);
        }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.change(|connection| {
            connection.requests -= 1;
            connection.idle_since = Instant::now();
        });
        self.0.0.table.freed.notify_waiters();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.table.open.lock().connections.remove(&self.number);
        self.table.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn table(requests: usize, probes: usize) -> Arc<Table> {
        Table::new(Capacity { requests, probes })
    }

    /// Admits connections one second after the other.
    async fn admit(table: &Arc<Table>, peers: &[IpAddr]) -> Vec<Place> {
        let mut places = Vec::new();
        for peer in peers {
            places.push(table.admit(*peer).unwrap());
            time::advance(Duration::from_secs(1)).await;
        }
        places
    }

    fn closed(places: &[Place]) -> Vec<usize> {
        let closed = places.iter().enumerate();
        let closed = closed.filter(|(_, it)| it.0.close.is_cancelled());
        closed.map(|(index, _)| index).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn longest_idle_connection_ends_when_the_table_is_full() {
        let table = table(3, 1);
        let places = admit(&table, &[HERE, HERE, HERE]).await;
        // The first is busy, and the second has had a request after the third was accepted.
        let _busy = places[0].begin();
        drop(places[1].begin());
        time::advance(Duration::from_secs(1)).await;
        let more = admit(&table, &[HERE]).await;
        assert_eq!(closed(&places), [2]);
        assert_eq!(more[0].admitted(), Admitted::Any);
        let _more = admit(&table, &[HERE]).await;
        assert_eq!(closed(&places), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_of_the_largest_peer_end_first() {
        let table = table(3, 1);
        let places = admit(&table, &[HERE, THERE, THERE]).await;
        let _more = admit(&table, &[HERE]).await;
        assert_eq!(closed(&places), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn busy_connections_leave_places_for_probes_only() {
        let table = table(2, 1);
        let places = admit(&table, &[HERE, HERE]).await;
        let busy: Vec<InProgress> = places.iter().map(Place::begin).collect();
        let probe = admit(&table, &[HERE]).await;
        assert_eq!(probe[0].admitted(), Admitted::Probe);
        // An idle connection for probes ends for the next probe.
        let next = admit(&table, &[HERE]).await;
        assert_eq!(closed(&probe), [0]);
        let probing = next[0].begin();
        assert!(table.admit(HERE).is_none());
        // A place that becomes free is found by whoever waits for one.
        let (room, ()) = tokio::join!(time::timeout(Duration::from_secs(9), table.room()), async {
            tokio::task::yield_now().await;
            drop(probing);
        });
        room.unwrap();
        drop(busy);
        assert_eq!(table.admit(HERE).unwrap().admitted(), Admitted::Any);
        assert_eq!(closed(&places).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn ended_connection_gives_its_place_back() {
        let table = table(1, 0);
        let place = table.admit(HERE).unwrap();
        let busy = place.begin();
        assert!(table.admit(HERE).is_none());
        drop((place, busy));
        assert!(table.open.lock().connections.is_empty());
        assert!(table.admit(HERE).is_some());
    }
}
