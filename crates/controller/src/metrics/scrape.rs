//! The state of all factories at the time of a scrape.

use std::sync::Arc;

use lariat_cache::{KindStatus, RequestStatus};
use lariat_lease::LeaseStatus;

use crate::SharedControllerFactory;
use crate::status::{ControllerStatus, HandlerStatus};

/// The status of all factories.
#[derive(Default)]
pub(super) struct Scrape {
    /// The factories.
    pub(super) members: Vec<Member>,
    /// The kinds with handlers.
    pub(super) kinds: Vec<Kind>,
    /// The kinds with a cache; more than those with handlers.
    pub(super) caches: Vec<Cached>,
}

/// A factory.
pub(super) struct Member {
    pub(super) context: Arc<str>,
    pub(super) requests: RequestStatus,
    /// The lease of its election or ring, if it has one.
    pub(super) elected: Option<Elected>,
}

/// The lease of a factory.
pub(super) struct Elected {
    /// The name of the lease or ring.
    pub(super) name: String,
    pub(super) status: LeaseStatus,
    /// The number of members of the ring; none for a leader election.
    pub(super) members: Option<usize>,
}

/// The controller of a kind in one factory.
pub(super) struct Kind {
    pub(super) context: Arc<str>,
    /// The kind as text.
    pub(super) name: String,
    pub(super) status: ControllerStatus,
}

/// The cache of a kind in one factory.
pub(super) struct Cached {
    pub(super) context: Arc<str>,
    /// The kind as text.
    pub(super) name: String,
    pub(super) status: KindStatus,
}

/// A label of a series.
pub(super) type Label<'a> = (&'static str, &'a str);

impl Scrape {
    pub(super) fn of(factories: &[(Arc<str>, SharedControllerFactory)]) -> Self {
        let mut scrape = Self::default();
        for (context, factory) in factories {
            scrape.members.push(Member {
                context: Arc::clone(context),
                requests: factory.caches().clients().requests(),
                elected: Elected::of(factory),
            });
            let kinds = factory.status().into_iter().map(|status| Kind {
                context: Arc::clone(context),
                name: status.cache.gvk.to_string(),
                status,
            });
            scrape.kinds.extend(kinds);
            let caches = factory.caches().status().into_iter().map(|status| Cached {
                context: Arc::clone(context),
                name: status.gvk.to_string(),
                status,
            });
            scrape.caches.extend(caches);
        }
        scrape
    }
}

impl Elected {
    fn of(factory: &SharedControllerFactory) -> Option<Self> {
        let leadership = factory.leadership()?;
        Some(Self {
            name: leadership.name().to_owned(),
            status: leadership.status(),
            members: factory.shards().map(|shards| shards.share().members()),
        })
    }
}

/// Iterates over the handlers of all kinds.
pub(super) fn handlers(kinds: &[Kind]) -> impl Iterator<Item = (&Kind, &HandlerStatus)> {
    kinds.iter().flat_map(|kind| {
        let handlers = kind.status.handlers.iter();
        handlers.map(move |handler| (kind, handler))
    })
}
