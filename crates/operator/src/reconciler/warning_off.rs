//! The twin of `warning` without the feature `events`: nothing is published.

use lariat_cache::View;
use lariat_controller::HandlerError;

use crate::needs::Rule;
use crate::reconcile::Reconcile;

pub(super) fn publish<K: View>(_: &Reconcile<K>, _: &HandlerError) {}

pub(super) fn rules() -> impl IntoIterator<Item = Rule> {
    []
}
