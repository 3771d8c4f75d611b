//! Ownership of switches: the label names the desired machine, the controlling owner the present one.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lariat::Query;
use lariat::kube::{Resource, ResourceExt};
use lariat::prelude::*;
use serde_json::json;

use super::kinds::{MACHINE, Machine, Switch};
use super::workshop::Workshop;
use crate::{Paint, print_action};

impl Workshop {
    /// Releases the switches whose label does not name the machine any more, adopts those without an owner whose label
    /// does, and returns those it owns.
    ///
    /// A switch of another owner is adopted once that one has released it, which is a change of the switch.
    pub(super) async fn claim(
        &self,
        cx: &Reconcile<Machine>,
    ) -> Result<Vec<Arc<Switch>>, HandlerError> {
        let machine = cx.key().name();
        let controls = |owner: &OwnerReference| Some(&owner.uid) == cx.object().uid().as_ref();
        for switch in self.switches.list(&Query::owned_by(cx.raw().uid())).await? {
            if switch.machine() != Some(machine) && !switch.is_going() {
                let mut owners = switch.owner_references().to_vec();
                owners.retain(|owner| !controls(owner));
                let patch = json!({"metadata": {"ownerReferences": owners}});
                self.change(&switch, patch).await?;
                print_action(
                    "Switch",
                    switch.name_any(),
                    Paint::Yellow,
                    format_args!("released by {machine}"),
                );
            }
        }
        let namespace = cx.key().namespace().unwrap_or_default();
        let named = Query::in_namespace(namespace).labels(format!("{MACHINE}={machine}").parse()?);
        let mut ours = Vec::new();
        for switch in self.switches.list(&named).await? {
            let controller = switch
                .owner_references()
                .iter()
                .find(|owner| owner.controller == Some(true));
            match controller {
                _ if switch.is_going() => {}
                Some(owner) if controls(owner) => ours.push(switch),
                Some(_) => {}
                None => {
                    let mut owners = switch.owner_references().to_vec();
                    owners.extend(cx.object().controller_owner_ref(&()));
                    let patch = json!({"metadata": {"ownerReferences": owners}});
                    ours.extend(self.change(&switch, patch).await?);
                    print_action(
                        "Switch",
                        switch.name_any(),
                        Paint::Yellow,
                        format_args!("adopted by {machine}"),
                    );
                }
            }
        }
        Ok(ours)
    }
}
