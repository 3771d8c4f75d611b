//! The Event about an object that does not decode.

use lariat_cache::View;
use lariat_controller::HandlerError;

use crate::events::Event;
use crate::needs::Rule;
use crate::reconcile::Reconcile;

/// Publishes a warning about the object of a call.
pub(super) fn publish<K: View>(cx: &Reconcile<K>, error: &HandlerError) {
    cx.event(Event::warning("Unreadable", error.to_string()).action("Reconciling"));
}

/// Returns the permissions that it needs.
pub(super) fn rules() -> impl IntoIterator<Item = Rule> {
    [Rule::events()]
}
