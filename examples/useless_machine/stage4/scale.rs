//! As many switches as the machine is to have.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat::kube::api::{DeleteParams, ObjectMeta};
use lariat::kube::{Resource, ResourceExt};
use lariat::operator::ApiError;
use lariat::prelude::*;

use super::{MACHINE, Machine, Switch, SwitchSpec, Workshop};
use crate::{Paint, tell};

impl Workshop {
    /// Makes the switches that are missing, deletes the surplus, and returns the rest in the order of their names.
    pub(super) async fn scale(
        &self,
        cx: &Reconcile<Machine>,
        mut switches: Vec<Arc<Switch>>,
    ) -> Result<Vec<Arc<Switch>>, ApiError> {
        let wanted = usize::try_from(cx.object().spec.switches).unwrap_or(0);
        let machine = cx.key().name();
        // Switches that go with their machine may be told before that the machine goes. New ones would be in vain.
        if switches.len() < wanted && self.goes(cx).await? {
            return Ok(switches);
        }
        while switches.len() < wanted {
            let made = self.switches.create(&new_switch(cx)).await?;
            tell(
                "Switch",
                made.name_any(),
                Paint::Green,
                format_args!("made for {machine}"),
            );
            switches.push(Arc::new(made));
        }
        // From what stays to what goes: what is down before what somebody has switched on, new before old. Times
        // count seconds, so names decide among those made together.
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
                _ => tell(
                    "Switch",
                    switch.name_any(),
                    Paint::Red,
                    format_args!("one too many for {machine}"),
                ),
            }
        }
        switches.sort_by_key(|switch| switch.name_any());
        Ok(switches)
    }

    /// Returns whether the API server knows already that a machine goes.
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
