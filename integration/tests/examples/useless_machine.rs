//! The useless machine, in its stages.

use lariat_integration::{example, interrupted, run};

use super::assert_refused;

/// One test, since the stages have different kinds of the same name.
#[tokio::test]
async fn the_machine_switches_itself_off_in_every_stage() {
    for stage in ["1", "2", "3"] {
        let arguments = ["--stage", stage, "--delay", "0.2"];
        let (code, stdout, stderr) = run(example("useless_machine", &arguments)).await;
        assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
        let flips = stdout.matches("flips its switch down").count();
        assert_eq!(flips, 6, "{stdout}");
    }
    let (code, stdout, stderr) = run(example("useless_machine", &["--delay", "0.3"])).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let flips = stdout.matches("is flipped down").count();
    assert_eq!(flips, 3, "{stdout}");
    for expected in ["released by robot", "surplus of robot"] {
        assert!(stdout.contains(expected), "no {expected:?} in:\n{stdout}");
    }
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
    #[cfg(unix)]
    ends_while_it_waits().await;
}

#[cfg(unix)]
async fn ends_while_it_waits() {
    let command = example("useless_machine", &["--delay", "60"]);
    let (code, text) = interrupted(command, "INT", &["▸ all are switched on"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("stopped\n"), "{text}");
}

#[tokio::test]
async fn there_is_no_fifth_stage_and_no_negative_delay() {
    for (arguments, reason) in [
        (
            ["--stage", "5"],
            "--stage cannot be \"5\": there are 1 to 4",
        ),
        (
            ["--delay", "-1"],
            "--delay cannot be \"-1\": cannot convert float seconds to Duration: value is negative",
        ),
    ] {
        assert_refused("useless_machine", &arguments, reason).await;
    }
}
