//! CSINodes.

use std::collections::HashSet;

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{self, Members, Shape};
use crate::validation::volumes;

// `ValidateCSINode` and `ValidateCSINodeUpdate`.
pub(in crate::validation) fn csi_node(context: &Context<'_>, causes: &mut Causes) {
    let drivers = context.get("spec").get("drivers");
    let mut seen = HashSet::new();
    for each in drivers.items() {
        check_driver(&each, &mut seen, causes);
    }
    let Some(old) = context.old("spec").map(|old| old.get("drivers")) else {
        return;
    };
    for before in old.items() {
        let same = drivers
            .items()
            .filter(|new| new.text_of("name") == before.text_of("name"));
        // A driver may be removed and added again in two updates; only changing it in one is refused.
        for new in same.filter(|new| fixed(new) != fixed(&before)) {
            let shown = structs::shown(new.value(), DRIVER);
            causes.invalid_struct(&drivers, &shown, "field is immutable");
        }
    }
}

/// Returns the immutable members of a driver.
fn fixed(driver: &Field<'_>) -> [Value; 2] {
    ["nodeID", "topologyKeys"].map(|name| driver.member(name).clone())
}

/// The form of a driver in messages, without the fields that may change.
const DRIVER: Members = &[
    ("name", "Name", Shape::Text),
    ("nodeID", "NodeID", Shape::Text),
    ("topologyKeys", "TopologyKeys", Shape::Value),
    // Go clears this member in copies before it compares and shows them (`MutableCSINodeAllocatableCount`). The empty
    // name is found in no object, so it prints as `null`.
    ("", "Allocatable", Shape::Value),
];

const MOST_ID: usize = 256;

fn check_driver<'a>(at: &Field<'a>, names: &mut HashSet<&'a str>, causes: &mut Causes) {
    volumes::check_driver(&at.get("name"), causes);
    let id = at.get("nodeID");
    causes.check_given(&id, "");
    if id.text().len() > MOST_ID {
        causes.invalid(&id, &format!("must be {MOST_ID} characters or less"));
    }
    causes.check_not_negative(&at.get("allocatable").get("count"));
    causes.check_unique(&at.get("name"), names);
    let mut seen = Vec::new();
    for key in at.get("topologyKeys").items() {
        if key.text().is_empty() {
            // The path is that of the driver, also for the two causes below: Go passes no deeper one.
            causes.required(at, "");
        }
        if seen.contains(&key.text()) {
            causes.duplicate_as(at, key.text());
        }
        seen.push(key.text());
        causes.check_format_of(at, key.text(), formats::qualified_name);
    }
}
