//! The simulation of replicas.

use std::sync::Arc;
use std::time::Duration;

use lariat_sim::internals::{ObjectsExt, Rate, Replicas, SimulationExt};
use lariat_sim::{Chaos, Objects, Simulation};
use serde_json::{Value, json};

use super::plan::plan;
use super::program;
use super::program::NUMBER;
use crate::setup::{Setup, Times, kinds};

/// The largest number of names of a kind's objects.
const NAMES: u16 = 10;

/// The time in which everything has to come to rest, in which the leases are checked too.
const RESTS: Duration = Duration::from_secs(6 * 60);

/// Makes the simulation of a seed: half of them elect a leader, the others form a ring.
pub(crate) fn simulation(seed: u64) -> (Simulation, Arc<Setup>) {
    let (setup, chaos) = begin(seed);
    let setup = Arc::new(setup);
    let [config_maps, secrets] = kinds();
    let mut simulation = Simulation::new(seed)
        .objects(Objects::new(config_maps, "configmaps").content(free))
        .objects(Objects::new(secrets, "secrets").content(owned).owned())
        .chaos(chaos);
    for number in 0..setup.rates.len() {
        let setup = Arc::clone(&setup);
        let name = format!("replica-{number}");
        simulation = simulation.program(&name, move |process| {
            program::run(process, Arc::clone(&setup))
        });
    }
    let replicas = Replicas {
        rates: setup.rates.clone(),
        settles: setup.settles(),
    };
    let planned = Arc::clone(&setup);
    let simulation = simulation
        .replicas(replicas)
        .planner(move |chaos, _| plan(&planned, chaos));
    (simulation, setup)
}

/// Draws the setup of a seed, and how long and with how many names it runs.
pub(super) fn begin(seed: u64) -> (Setup, Chaos) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x7265_706c);
    let setup = setup(seed, &mut random);
    let chaos = Chaos::default()
        .names(random.u16(1..=NAMES))
        .duration(Duration::from_secs(random.u64(60..=240)))
        .settle(RESTS);
    (setup, chaos)
}

fn setup(seed: u64, random: &mut fastrand::Rng) -> Setup {
    let second = Duration::from_secs(1);
    // client-go's times, and others in about the same relations.
    let (duration, renew_deadline, retry_period) = [
        (15 * second, 10 * second, 2 * second),
        (15 * second, 10 * second, 2 * second),
        (30 * second, 20 * second, 5 * second),
        (6 * second, 4 * second, second),
    ][random.usize(..4)];
    let drain = [Duration::ZERO, second, 5 * second, 30 * second][random.usize(..4)];
    let replicas = random.usize(2..=4);
    let drifts = random.u8(..4) == 0;
    let rate = |random: &mut fastrand::Rng| {
        Rate(if drifts {
            // Less than 1.5, the least ratio of lease duration and renew deadline, or two holders would be allowed.
            random.u32(1000..=1300)
        } else {
            1000
        })
    };
    Setup {
        seed,
        is_sharded: seed % 2 == 1,
        times: Times {
            duration,
            renew_deadline,
            retry_period,
            drain,
        },
        workers: random.usize(1..=4),
        handlers: random.usize(1..=2),
        fails: seed % 5 < 2,
        rates: (0..replicas).map(|_| rate(random)).collect(),
    }
}

fn free(number: u64) -> Value {
    json!({"metadata": {"annotations": {NUMBER: number.to_string()}}})
}

/// Two of three writes name one of four owners.
fn owned(number: u64) -> Value {
    let owner = number % 6;
    let mut object = free(number);
    object["metadata"]["ownerReferences"] = match owner {
        0..4 => json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{owner}"), "controller": true,
            "uid": format!("00000000-0000-0000-0000-00000000000{owner}"),
        }]),
        _ => Value::Null,
    };
    object
}
