//! Rows of devices and claims to them.

use super::column::{AGE, NAME, Printer, text};

pub(super) const CLAIMS: Printer = Printer {
    columns: &[NAME, text("State"), AGE],
    cells: |claim| {
        let mut state = Vec::new();
        if claim.is_deleting() {
            state.push("deleted");
        }
        match claim.has("/status/allocation") {
            true => state.push("allocated"),
            false if !claim.is_deleting() => state.push("pending"),
            false => {}
        }
        if !claim.list("/status/reservedFor").is_empty() {
            state.push("reserved");
        }
        vec![
            claim.name().into(),
            state.join(",").into(),
            claim.age().into(),
        ]
    },
};

pub(super) const SLICES: Printer = Printer {
    columns: &[NAME, text("Node"), text("Driver"), text("Pool"), AGE],
    cells: |slice| {
        vec![
            slice.name().into(),
            slice.text("/spec/nodeName").into(),
            slice.text("/spec/driver").into(),
            slice.text("/spec/pool/name").into(),
            slice.age().into(),
        ]
    },
};

/// What has no columns of its own but its age.
pub(super) const OTHERS: Printer = Printer {
    columns: &[NAME, AGE],
    cells: |object| vec![object.name().into(), object.age().into()],
};
