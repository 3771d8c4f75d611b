//! The methods of [`Reconcile`] that publish Events.

use k8s_openapi::api::core::v1::ObjectReference;
use lariat_cache::View;

use super::event::Event;
use super::recorder::Recorder;
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Publishes an event about the reconciled object.
    ///
    /// It does not wait, and an event that cannot be delivered is dropped; see [`Recorder`]. An operator that [only
    /// plans](crate::Operator::plan_only) logs the event instead.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use lariat::operator::Event;
    /// use lariat::{HandlerResult, Outcome, Reconcile};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     cx.event(Event::normal("Scaled", "scaled to 3 pods").action("Scaling"));
    ///     Ok(Outcome::done())
    /// }
    /// ```
    pub fn event(&self, event: Event) {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let (gvk, raw) = (self.gvk(), self.raw());
        let about = ObjectReference {
            api_version: some(gvk.api_version()),
            kind: some(gvk.kind().to_owned()),
            name: some(raw.key().name().to_owned()),
            namespace: raw.key().namespace().map(str::to_owned),
            uid: some(raw.uid().to_string()),
            resource_version: some(raw.version().to_string()),
            field_path: None,
        };
        Recorder::of(self.operator()).publish(&about, event);
    }
}
