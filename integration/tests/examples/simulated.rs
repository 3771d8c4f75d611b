//! The simulated operator: the bug is shrunk to a small run, and the fixed version passes.

use lariat_integration::{example, run};

use super::assert_refused;

#[tokio::test]
async fn the_bug_is_shown_with_the_steps_that_lead_to_it() {
    let (code, stdout, stderr) = run(example("simulated", &[])).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for part in [
        "has no ConfigMap",
        "steps lead to it",
        "no Secret was left behind in",
    ] {
        assert!(stdout.contains(part), "no {part:?} in:\n{stdout}");
    }
}

#[tokio::test]
async fn a_number_of_seeds_that_is_none_is_refused() {
    let reason = "invalid value 'many' for '--seeds <N>': invalid digit found in string\n\n\
               For more information, try '--help'.";
    assert_refused("simulated", &["--seeds", "many"], reason).await;
}
