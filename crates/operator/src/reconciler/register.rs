//! Registers reconcilers: checks the settings, takes the claims, registers the handler.

use std::future::Future;
use std::sync::Arc;

use lariat_cache::View;
use lariat_controller::HandlerResult;
use tokio_util::sync::CancellationToken;

use super::builder::Reconciler;
use super::claims::Claims;
use super::error::ReconcilerError;
use super::pause::Pause;
use super::registration::ReconcilerRegistration;
use super::run::Call;
use crate::finalizer::HeldFinalizer;
use crate::names;
use crate::needs::impersonation;
use crate::reconcile::{Callback, Reconcile};
use crate::status::Report;

impl<K: View> Reconciler<K> {
    /// Registers the reconciler with its function.
    ///
    /// If the factory is running, the function is called for every existing object. Dropping the returned handle leaves
    /// the reconciler registered.
    ///
    /// # Errors
    ///
    /// As for [`SharedController::register_handler`](lariat_controller::SharedController::register_handler). Also if
    /// the name of the operator, finalizer or condition is invalid, if another reconciler of the kind in this operator
    /// has the same finalizer or condition, or if the controller belongs to another factory than the operator. Nothing
    /// is changed then.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime while the factory runs, and this is the first use of the kind.
    pub fn register<F, Fut>(self, reconcile: F) -> Result<ReconcilerRegistration, ReconcilerError>
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        self.check()?;
        let Self {
            name,
            kind,
            relate,
            polls,
            mut options,
            mut setup,
        } = self;
        options = setup.guards.judge(&setup.operator, &name, options);
        if let Some(after) = setup.after_final_failure(kind.gvk()) {
            options = options.requeue_final(after);
        }
        if let Some(most) = setup.longest_delay(kind.gvk()) {
            options = options.retry_within(most);
        }
        // A reconciler whose token was cancelled must no longer hold its claims and its name.
        kind.sweep();
        let claims = setup.claims();
        let ended = Arc::clone(&setup.ended);
        let claims = Claims::begin(&setup.operator, kind.gvk(), &name, claims, ended)?;
        let needs = std::mem::take(&mut setup.needs);
        // Added to the user's predicates, not combined with them: these changes always reach the reconciler.
        options = options.also(setup.needed());
        let call = Call::new(setup, Callback::new(reconcile));
        claims.count(Arc::downgrade(&call) as _);
        // Relations come before the handler, so that the related caches are synced before its first call.
        claims.hold(relate.into_iter().map(|relate| relate(&kind)).collect());
        let (ended, polling) = (Arc::clone(&claims), CancellationToken::new());
        let polled = polling.clone();
        options = options.on_end(move || {
            polled.cancel();
            ended.release();
        });
        // Sources come before the handler too: if one of their names is taken, the handler has not been called yet.
        let begun = polls
            .into_iter()
            .try_for_each(|begin| begin(&kind, &name, polling.clone()).map(drop));
        let handler = move |cx| {
            let call = Arc::clone(&call);
            async move { call.run(cx).await }
        };
        match begun.and_then(|()| kind.register_handler(&name, options.handler(handler))) {
            Ok(registration) => {
                let because = || format!("reconciler {name} of {}", kind.gvk());
                let identity = registration.identity().map(impersonation);
                // Declared last, when nothing can fail any more. If the reconciler has ended by now, nothing is
                // declared.
                let needs = needs.into_iter().chain(identity.into_iter().flatten());
                claims.need(needs.map(|rule| rule.because_of(because)));
                Ok(ReconcilerRegistration::new(registration, claims))
            }
            Err(error) => {
                polling.cancel();
                kind.sweep();
                claims.release();
                Err(error.into())
            }
        }
    }

    /// Checks names that the API server would refuse only when the reconciler writes.
    fn check(&self) -> Result<(), ReconcilerError> {
        let (gvk, name) = (self.kind.gvk(), &self.name);
        let operator = &self.setup.operator;
        let is_own = self.kind.client().is_of(operator.caches.clients());
        let foreign = self.setup.foreign.as_ref().or((!is_own).then_some(gvk));
        if let Some(foreign) = foreign {
            return Err(ReconcilerError::OtherFactory {
                gvk: foreign.clone(),
                name: name.clone(),
                operator: operator.name.to_string(),
            });
        }
        if let Some(reason) = names::not_a_manager(&operator.name) {
            return Err(ReconcilerError::OperatorName {
                gvk: gvk.clone(),
                name: name.clone(),
                operator: operator.name.to_string(),
                reason,
            });
        }
        let finalizer = self
            .setup
            .finalizer
            .as_ref()
            .map_or(Ok(()), HeldFinalizer::check);
        finalizer.map_err(|source| ReconcilerError::Finalizer {
            gvk: gvk.clone(),
            name: name.clone(),
            source,
        })?;
        let pause = self.setup.pause.as_ref().map_or(Ok(()), Pause::check);
        pause.map_err(|annotation| ReconcilerError::PauseAnnotation {
            gvk: gvk.clone(),
            name: name.clone(),
            annotation,
        })?;
        let report = self.setup.report.as_ref().map_or(Ok(()), Report::check);
        report.map_err(|source| ReconcilerError::Condition {
            gvk: gvk.clone(),
            name: name.clone(),
            source,
        })
    }
}
