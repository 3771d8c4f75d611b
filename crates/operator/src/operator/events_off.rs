//! The twin of `events` without the feature `events`.

use lariat_core::TableSize;

use super::operator::Operator;

impl Operator {
    pub(super) fn open_events(&self) {}

    pub(super) async fn close_events(&self) {}

    pub(super) fn events_group(&self) -> &'static str {
        ""
    }

    pub(super) fn event_table_sizes(&self, _: &mut Vec<TableSize>) {}
}
