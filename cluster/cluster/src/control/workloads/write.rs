//! Writes past the checks of a kind.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::managed;
use lariat_apimachinery::object::Object;

use crate::control::write::{WriteOutcome, Writer};
use crate::store::Stored;
use crate::strategy::{self, Part, Replacement};
use crate::verbs;

impl Writer<'_> {
    /// Changes an object past the checks of its kind.
    ///
    /// Some subresources have rules of their own: `binding` of Pods, and the status of Deployments, which takes an
    /// annotation along.
    pub(super) fn store(
        &self,
        resource: &Resource,
        current: &Arc<Stored>,
        edit: impl FnOnce(&mut Object),
    ) -> WriteOutcome {
        let mut object = current.object();
        resource.set_type(&mut object);
        let old = object.clone();
        edit(&mut object);
        strategy::complete(resource, &mut object);
        let part = Part::Main;
        verbs::account_as(
            self.server,
            resource,
            part,
            self.manager,
            Some(&old),
            &mut object,
        );
        let replacement = if managed::differ(&old, &object) {
            Replacement::Changed(object)
        } else {
            Replacement::Unchanged
        };
        match verbs::replace(self.server, resource, current, &replacement) {
            Some(_) => WriteOutcome::Done,
            None => WriteOutcome::Raced,
        }
    }
}
