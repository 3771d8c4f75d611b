//! The collector, which a registry calls at each scrape.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::output::Output;
use super::scrape::Scrape;
use super::{caches, controllers, handlers, lasso, leases, queues, requests};
use crate::SharedControllerFactory;
use crate::factory::FactoryCore;

/// Collects the metrics of factories for a registry.
///
/// Clones are handles of the same collector. Factories can be added at any time. The collector does not keep them
/// alive: the series of a factory end when it is dropped. See [the module](super) for the series.
///
/// ```no_run
/// use lariat::controller::metrics::{Collector, prometheus_client::registry::Registry};
/// use lariat::SharedControllerFactory;
///
/// # fn example(local: &SharedControllerFactory, remote: &SharedControllerFactory) {
/// let collector = Collector::new();
/// collector.add("local", local);
/// collector.add("remote", remote);
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(collector.clone()));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Collector {
    /// The factories, each with a different context id.
    members: Arc<Mutex<Vec<Member>>>,
}

struct Member {
    context: Arc<str>,
    factory: Weak<FactoryCore>,
}

impl Collector {
    /// Creates a collector without factories.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a factory under a context id, lasso's label `ctx`.
    ///
    /// It replaces a factory that was added under the same id, because two series with the same name and labels are
    /// invalid. So a new factory for a cluster replaces the old one, even while that is still being stopped.
    pub fn add(&self, context: impl Into<Arc<str>>, factory: &SharedControllerFactory) {
        let context = context.into();
        let mut members = self.members.lock();
        // Dropped factories are removed as well, so that the list does not grow.
        members.retain(|member| member.is_alive() && member.context != context);
        members.push(Member {
            context,
            factory: Arc::downgrade(&factory.core),
        });
    }

    /// Returns the factories that still exist, with their context ids.
    ///
    /// They are in the order in which they were added.
    #[must_use]
    pub fn factories(&self) -> Vec<(Arc<str>, SharedControllerFactory)> {
        let members = self.members.lock();
        let alive = members.iter().filter_map(|member| {
            let core = member.factory.upgrade()?;
            Some((
                Arc::clone(&member.context),
                SharedControllerFactory { core },
            ))
        });
        alive.collect()
    }
}

impl Member {
    fn is_alive(&self) -> bool {
        self.factory.strong_count() > 0
    }
}

impl collector::Collector for Collector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // All factories are read first: each family must be written once, with the series of all factories.
        let scrape = Scrape::of(&self.factories());
        let mut out = Output::new(encoder);
        queues::write(&scrape.kinds, &mut out)?;
        controllers::write(&scrape.kinds, &mut out)?;
        lasso::write(&scrape, &mut out)?;
        handlers::write(&scrape.kinds, &mut out)?;
        caches::write(&scrape.caches, &mut out)?;
        requests::write(&scrape.members, &mut out)?;
        leases::write(&scrape.members, &mut out)
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.members.lock();
        let alive = members.iter().filter(|member| member.is_alive());
        let contexts: Vec<&str> = alive.map(|member| &*member.context).collect();
        f.debug_struct("Collector")
            .field("contexts", &contexts)
            .finish()
    }
}
