//! The useless machine: it switches itself off whenever it is switched on.
//!
//! Shown, in the stages of the kubebuilder lecture (`--stage 1` to `--stage 4`): a reconciler, why it must not sleep,
//! waiting with a requeue instead, and objects that own others.
//!
//! Run: `cargo run -p lariat-operators --example useless_machine` (embedded cluster), with `KUBECONFIG=…` on your own
//! cluster, or with `-- --watch` to use the switches yourself; `--delay 5` waits as long as the lecture does.

use std::process::ExitCode;

use anyhow::{Result, bail};
use lariat::cluster::testing::Wait;
use lariat::kube::ResourceExt;
use lariat::kube::api::{DeleteParams, ListParams, PostParams};
use lariat_operators::useless_machine::stage4::{MACHINE, Switch};
use lariat_operators::useless_machine::{Pace, lever, stage1, stage2, stage3, stage4};
use lariat_operators::{About, Flag, Options, Stage, TIMEOUT, merge, perform, until_printed};
use serde_json::json;
use tokio::time::Instant;

const ABOUT: About = About {
    name: "useless_machine",
    what: "a machine that switches itself off",
    flags: &[
        Flag {
            name: "stage",
            default: "4",
            help: "the stage of the lecture, from 1 to 4",
        },
        Flag {
            name: "delay",
            default: "1",
            help: "how many seconds a switch stays up",
        },
    ],
    check: |options| chosen(options).and(options.seconds("delay")).map(drop),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    let (operator, pace) = (&stage.operator, Pace::new(stage.options.seconds("delay")?));
    match chosen(&stage.options)? {
        4 => {
            stage.define::<stage4::Machine>().await?;
            stage.define::<Switch>().await?;
            stage.suggest_manifest("useless_machine/robot.yaml");
            let one = "\"$(k get switches --output name | head -n 1)\"";
            let up = r#"'{"spec": {"position": "up"}}'"#;
            stage.suggest(format_args!("k patch {one} --type merge --patch {up}"));
            stage4::register(operator, &pace)
        }
        number => {
            stage.define::<lever::Machine>().await?;
            stage.suggest_manifest("useless_machine/lever.yaml");
            stage.suggest("k get machines");
            match number {
                1 => stage1::register(operator),
                2 => stage2::register(operator, &pace, 1),
                _ => stage3::register(operator, &pace),
            }
        }
    }
}

fn chosen(options: &Options) -> Result<u8> {
    match options.value("stage")? {
        number @ 1..=4 => Ok(number),
        number => bail!("--stage cannot be \"{number}\": there are 1 to 4"),
    }
}

async fn story(stage: &Stage) -> Result<()> {
    match chosen(&stage.options)? {
        4 => story_of_switches(stage).await,
        number => story_of_levers(stage, number).await,
    }
}

/// Stages 1 to 3: three machines are switched on together, twice.
async fn story_of_levers(stage: &Stage, number: u8) -> Result<()> {
    let machines = stage.api::<lever::Machine>();
    let names = ["clock", "piano", "robot"];
    for name in names {
        let machine = lever::Machine::new(name, lever::MachineSpec::default());
        machines.create(&PostParams::default(), &machine).await?;
    }
    let how = match number {
        1 => "each flips immediately",
        2 => "the handler sleeps, so each waits for the one before",
        _ => "no handler sleeps, so they wait together",
    };
    for times in ["", " again"] {
        stage.step(format_args!("three machines are switched on{times}: {how}"));
        let begin = Instant::now();
        for name in names {
            merge(&machines, name, json!({"spec": {"switchPosition": "up"}})).await?;
        }
        for name in names {
            stage
                .until_printed(&[name, "flips its switch down"])
                .await?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        stage.step(format_args!("all are down after {seconds:.1} s"));
    }
    Ok(())
}

/// Stage 4: a machine and its switches.
async fn story_of_switches(stage: &Stage) -> Result<()> {
    let (machines, switches) = (stage.api::<stage4::Machine>(), stage.api::<Switch>());
    stage.step("a machine with three switches is created");
    let spec = stage4::MachineSpec { switches: 3 };
    machines
        .create(&PostParams::default(), &stage4::Machine::new("robot", spec))
        .await?;
    stage.until_printed(&["robot ddd"]).await?;

    stage.step("all are switched on; the machine flips one at a time");
    let made = switches.list(&ListParams::default()).await?;
    for switch in &made {
        merge(
            &switches,
            &switch.name_any(),
            json!({"spec": {"position": "up"}}),
        )
        .await?;
    }
    until_printed(3, &["is flipped down"]).await?;
    stage.until_printed(&["robot ddd"]).await?;

    stage.step("one is relabelled for another machine: it is replaced");
    let taken = made
        .items
        .first()
        .map(ResourceExt::name_any)
        .unwrap_or_default();
    merge(
        &switches,
        &taken,
        json!({"metadata": {"labels": {MACHINE: "other"}}}),
    )
    .await?;
    stage.until_printed(&[&taken, "released by robot"]).await?;
    stage.until_printed(&["created for robot"]).await?;

    stage.step("it is scaled down to two");
    merge(&machines, "robot", json!({"spec": {"switches": 2}})).await?;
    stage.until_printed(&["surplus of robot"]).await?;
    stage.until_printed(&["robot dd"]).await?;

    stage.step("the machine is deleted, and its switches with it");
    machines
        .delete("robot", &DeleteParams::foreground())
        .await?;
    // The garbage collector discovers new kinds, such as Machine, every half minute.
    let wait = Wait::new(&machines, "robot").timeout(TIMEOUT);
    Ok(wait.gone().await?)
}
