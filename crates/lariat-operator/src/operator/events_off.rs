//! The twin of `events` without the feature `events`.

use lariat_core::Remembered;

use super::operator::Operator;

impl Operator {
    pub(super) fn open_events(&self) {}

    pub(super) async fn close_events(&self) {}

    pub(super) fn events_group(&self) -> &'static str {
        ""
    }

    pub(super) fn remembered_events(&self, _: &mut Vec<Remembered>) {}
}
