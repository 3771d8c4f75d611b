//! Objects that do not decode as the type of their reconciler.

use std::sync::Arc;

use lariat_cache::{CachedObject, DecodeError, Metadata, View};
use lariat_controller::{Context, HandlerError, HandlerResult};

use super::run::Call;
use super::warning;
use crate::reconcile::Reconcile;

impl<K: View> Call<K> {
    /// Reports that the object does not decode, and returns the error.
    ///
    /// The condition is written through the metadata, which can be read in any case. A pause comes first, as for an
    /// object that decodes.
    pub(super) async fn report_unreadable(
        &self,
        cx: &Context<K>,
        error: DecodeError,
    ) -> HandlerResult {
        let raw = cx.raw().filter(|_| !error.is_no_content()).cloned();
        let Some(raw) = raw else {
            return Err(error.into());
        };
        let (pause, report) = (&self.setup.pause, &self.setup.report);
        let paused = pause.as_ref().and_then(|pause| pause.reason(&raw));
        let cx = self.of_metadata(cx, raw)?;
        if let Some(reason) = paused {
            if let Some(report) = report {
                report.report_pause(&cx, &reason).await;
            }
            return Err(HandlerError::ignore(reason));
        }
        let error = HandlerError::from(error);
        if let Some(report) = report
            && report.report_unreadable(&cx, &error).await
        {
            warning::publish(&cx, &error);
        }
        Err(error)
    }

    /// Returns the call as that of a reconciler of metadata.
    fn of_metadata(
        &self,
        cx: &Context<K>,
        raw: Arc<CachedObject>,
    ) -> Result<Reconcile<Metadata>, DecodeError> {
        let object = Metadata::view(&raw, cx.gvk())?;
        let cx = Arc::new(cx.viewed());
        let operator = Arc::clone(&self.setup.operator);
        Ok(Reconcile::new(
            cx,
            object,
            raw,
            operator,
            self.of_reconciler.clone(),
        ))
    }
}
