//! Runs one fuzz target: under libFuzzer with `--cfg fuzzing`, else over the files it is given.
#![cfg_attr(fuzzing, no_main)]

use lariat_cluster_fuzz::Target;

/// Which target libFuzzer runs.
#[cfg(fuzzing)]
const VARIABLE: &str = "LARIAT_FUZZ_TARGET";

#[cfg(fuzzing)]
fn chosen() -> Target {
    static CHOSEN: std::sync::OnceLock<Target> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| {
        // What the cluster or a parser catches is no finding, so the hook that aborts goes; libFuzzer sees what is
        // not caught, with the message of the last panic.
        lariat_fuzz::quiet_panics();
        let name = std::env::var(VARIABLE).unwrap_or_default();
        lariat_fuzz::target(&name).unwrap_or_else(|| {
            eprintln!("{VARIABLE} names no target; scripts/fuzz.sh sets it");
            std::process::exit(2)
        })
    })
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(init: { chosen(); }, |data: &[u8]| {
    lariat_fuzz::run(chosen(), data);
});

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let outcome = match lariat_fuzz::target(&name) {
        Some(target) => arguments.try_for_each(|path| repeat(target, &path)),
        None if name == "seeds" => lariat_cluster_fuzz::write_seeds(),
        None => {
            let names: Vec<&str> = lariat_fuzz::targets().map(|each| each.name).collect();
            eprintln!(
                "usage: lariat-fuzz TARGET FILE…\ntargets: {}",
                names.join(" ")
            );
            return 2.into();
        }
    };
    match outcome {
        Ok(()) => 0.into(),
        Err(error) => {
            eprintln!("{error}");
            1.into()
        }
    }
}

/// Runs a target over the input in a file.
#[cfg(not(fuzzing))]
fn repeat(target: Target, path: &str) -> std::io::Result<()> {
    (target.run)(&std::fs::read(path)?);
    println!("{path}: holds");
    Ok(())
}
