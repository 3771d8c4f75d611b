//! Lists and watches of several objects.

use super::script::Script;
use super::{objects, reads};
use crate::step::Body;

/// Three objects, lists and watches of them.
pub(super) fn sequence(script: &mut Script<'_>) {
    if !script.kind.is_delicate() {
        for which in 0..3 {
            let manifest = script.manifest(which);
            let collection = script.kind.collection();
            script.leaves(which);
            let id = script.step("create", "POST", &collection, Body::Json(manifest));
            script.last[which] = Some(id);
        }
    }
    for _ in 0..script.random.usize(3..8) {
        match script.random.u32(..10) {
            0..3 => reads::pages(script),
            3..8 => reads::list(script),
            _ => reads::watch(script),
        }
        if script.chance(15) {
            objects::create(script, 1);
        }
    }
}
