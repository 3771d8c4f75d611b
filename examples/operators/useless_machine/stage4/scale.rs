//! Scaling the number of switches.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat::kube::api::{DeleteParams, ObjectMeta};
use lariat::kube::{Resource, ResourceExt};
use lariat::operator::ApiError;
use lariat::prelude::*;

use super::kinds::{MACHINE, Machine, Switch, SwitchSpec};
use super::workshop::Workshop;
use crate::{Paint, print_action};

impl Workshop {
    /// Creates missing switches, deletes surplus ones, and returns the rest in the order of their names.
    pub(super) async fn scale(
        &self,
        cx: &Reconcile<Machine>,
        mut switches: Vec<Arc<Switch>>,
    ) -> Result<Vec<Arc<Switch>>, ApiError> {
        let wanted = usize::try_from(cx.object().spec.switches).unwrap_or(0);
        let machine = cx.key().name();
        // When a machine is deleted, the deletion of its switches may be published first. New ones would be pointless.
        if switches.len() < wanted && self.goes(cx).await? {
            return Ok(switches);
        }
        while switches.len() < wanted {
            let made = self.switches.create(&new_switch(cx)).await?;
            print_action(
                "Switch",
                made.name_any(),
                Paint::Green,
                format_args!("created for {machine}"),
            );
            switches.push(Arc::new(made));
        }
        // Those to keep first: switches that are up before those that are down, old before new. Times have a resolution
        // of seconds, so names decide among switches created together.
        switches.sort_by_key(|switch| {
            let created = switch.creation_timestamp().map(|time| time.0);
            (switch.is_down(), created, switch.name_any())
        });
        for switch in switches.drain(wanted.min(switches.len())..) {
            match self
                .switches
                .delete(&switch.key(), &DeleteParams::default())
                .await
            {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => print_action(
                    "Switch",
                    switch.name_any(),
                    Paint::Red,
                    format_args!("surplus of {machine}"),
                ),
            }
        }
        switches.sort_by_key(|switch| switch.name_any());
        Ok(switches)
    }

    /// Returns whether a machine is being deleted, according to the API server.
    async fn goes(&self, cx: &Reconcile<Machine>) -> Result<bool, ApiError> {
        let live = self.machines.get_live(cx.key()).await?;
        Ok(live.is_none_or(|live| live.metadata.deletion_timestamp.is_some()))
    }
}

fn new_switch(cx: &Reconcile<Machine>) -> Switch {
    let (namespace, machine) = (cx.key().namespace(), cx.key().name());
    Switch {
        metadata: ObjectMeta {
            generate_name: Some("switch-".to_owned()),
            namespace: namespace.map(str::to_owned),
            labels: Some(BTreeMap::from([(MACHINE.to_owned(), machine.to_owned())])),
            owner_references: cx
                .object()
                .controller_owner_ref(&())
                .map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: SwitchSpec {
            position: "down".to_owned(),
        },
        status: None,
    }
}
