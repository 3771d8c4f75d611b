//! The twin of `sets` without the feature `apply`.

use lariat_core::{Gvk, ObjectKey, Remembered};

use crate::reconcile::OperatorState;

pub(super) fn begin(_: &OperatorState, _: &Gvk) {}

pub(super) fn end(_: &OperatorState, _: &Gvk) {}

pub(super) fn forget(_: &OperatorState, _: &Gvk, _: &ObjectKey) {}

pub(super) fn remembered(_: &OperatorState, _: &mut Vec<Remembered>) {}
