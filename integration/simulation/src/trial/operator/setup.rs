//! The setup of the operator, which all its incarnations have in common.

use std::time::Duration;

use lariat_operator::EventApi;
use lariat_sim::internals::ObjectsExt;
use lariat_sim::{Chaos, Objects, Simulation};
use serde_json::json;

use super::foreign_writer;
use super::operator::run;
use crate::shop;
use crate::trial::planned;

#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) budget: Option<usize>,
    /// The interval at which each shop is reconciled.
    pub(super) period: Duration,
    pub(super) events: EventApi,
    /// Whether Secrets are watched by their metadata alone.
    pub(super) metadata: bool,
    /// Whether ends of shops are reported.
    pub(super) ends: bool,
    /// Whether a cleanup applies empty sets, or leaves children to garbage collection.
    pub(super) empties: bool,
    /// Whether foreign objects under the names of children are removed in the end.
    pub(super) clears: bool,
}

impl Setup {
    fn new(random: &mut fastrand::Rng) -> Self {
        Self {
            seed: random.u64(..),
            workers: random.usize(1..5),
            budget: (random.u8(..4) == 0).then(|| random.usize(2_000..40_000)),
            period: Duration::from_secs([30, 60, 240][random.usize(..3)]),
            events: [EventApi::Core, EventApi::Events][random.usize(..2)],
            metadata: random.u8(..3) == 0,
            ends: random.bool(),
            empties: random.u8(..3) == 0,
            clears: random.bool(),
        }
    }
}

/// Creates a simulation of a shop operator in one or two replicas.
///
/// Foreign clients write, too.
pub(in crate::trial) fn simulation(seed: u64) -> Simulation {
    let data = |number: u64| json!({"data": {"number": (number % 9).to_string()}});
    let secret = |number: u64| json!({"stringData": {"number": (number % 9).to_string()}});
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    // The number spells "shops".
    let mut random = fastrand::Rng::with_seed(seed ^ 0x0073_686f_7073);
    let setup = Setup::new(&mut random);
    let shops = Objects::new(shop::gvk(), "shops")
        .content(shop::spec)
        .custom(schema)
        .of_one_version();
    let kinds = [shop::config_maps(), shop::secrets(), shop::gvk()];
    let mut simulation = planned(seed, kinds.map(|kind| kind.kind().to_owned()))
        .objects(Objects::new(shop::config_maps(), "configmaps").content(data))
        .objects(Objects::new(shop::secrets(), "secrets").content(secret))
        .objects(shops)
        .chaos(Chaos::default().duration(Duration::from_secs(random.u64(10..60))));
    let replicas = if random.u8(..3) == 0 { 2 } else { 1 };
    for replica in 0..replicas {
        simulation = simulation.program(&format!("operator-{replica}"), move |process| {
            run(process, setup)
        });
    }
    simulation.program("foreign-writer", move |process| {
        foreign_writer::run(process, setup)
    })
}
