use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{Context, Outcome};
use tokio::time;

use super::*;
use crate::chaos::Chaos;
use crate::objects::Objects;
use crate::plan::{PlanStep, ProcessFault, StepAction};
use crate::simulation::Simulation;

/// A program whose first incarnation has calls longer than its grace period.
async fn run(process: Process) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let factory = process
        .factory()
        .grace_period(Duration::from_secs(10))
        .build();
    let is_slow = process.incarnation() == 0;
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps.register_handler("slow", move |_: Context<ConfigMap>| async move {
        if is_slow {
            time::sleep(Duration::from_secs(60)).await;
        }
        Ok(Outcome::done())
    })?;
    Ok(process.run(&factory, 1).await?)
}

#[test]
fn a_stop_that_is_asked_for_while_faults_last_may_cut_calls_short_when_they_have_ended() {
    let config_maps = Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps");
    let simulation = Simulation::new(1)
        .objects(config_maps.initial(1))
        .chaos(Chaos::default().duration(Duration::from_secs(5)))
        .program("operator", run);
    let what = StepAction::Process {
        process: 0,
        what: ProcessFault::Restart(Duration::from_secs(1)),
    };
    let at = Duration::from_secs(4);
    let report = simulation
        .run_plan(&[PlanStep { at, what }])
        .unwrap_or_else(|failure| panic!("{failure}"));
    let is_cut = |line: &str| line.contains("slow: ConfigMap default/o0 dropped");
    let lines: Vec<_> = report.trace().lines().collect();
    assert!(lines.iter().any(|line| is_cut(line)), "{lines:?}");
}
