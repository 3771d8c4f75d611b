//! The twin of `sets` without the feature `apply`.

use lariat_core::{Gvk, ObjectKey, TableSize};

use crate::reconcile::OperatorState;

pub(super) fn begin(_: &OperatorState, _: &Gvk) {}

pub(super) fn end(_: &OperatorState, _: &Gvk) {}

pub(super) fn forget(_: &OperatorState, _: &Gvk, _: &ObjectKey) {}

pub(super) fn table_sizes(_: &OperatorState, _: &mut Vec<TableSize>) {}
