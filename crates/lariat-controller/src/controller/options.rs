//! The options of a controller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_queue::{Ageing, QueueBuilder, RateLimiter, WorkQueue, group};

use super::core::Queue;

/// What a factory gives each of its controllers.
#[derive(Clone, Default)]
pub(crate) struct ControllerOptions {
    pub(crate) handler_timeout: Option<Duration>,
    /// Makes the limiter of one controller; lasso's curve without it.
    limiter: Option<Arc<SetLimiter>>,
    pub(crate) fair_namespaces: bool,
    pub(crate) ageing: Ageing,
}

type SetLimiter = dyn Fn(QueueBuilder<ObjectKey>) -> QueueBuilder<ObjectKey> + Send + Sync;

impl ControllerOptions {
    pub(crate) fn set_limiter<L: RateLimiter>(
        &mut self,
        make: impl Fn() -> L + Send + Sync + 'static,
    ) {
        self.limiter = Some(Arc::new(move |builder| builder.limiter(make())));
    }

    /// Makes the queue of one controller.
    pub(super) fn queue(&self) -> Queue {
        let mut builder = WorkQueue::<ObjectKey>::builder().ageing(self.ageing);
        if let Some(limiter) = &self.limiter {
            builder = limiter(builder);
        }
        if self.fair_namespaces {
            builder = builder.fair_by(|key: &ObjectKey| group(&key.namespace()));
        }
        builder.build()
    }
}

impl fmt::Debug for ControllerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerOptions")
            .field("handler_timeout", &self.handler_timeout)
            .field("fair_namespaces", &self.fair_namespaces)
            .finish_non_exhaustive()
    }
}
