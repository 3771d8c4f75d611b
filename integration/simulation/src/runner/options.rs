//! The options of `simulate`.

use std::time::Duration;

use clap::Parser;

/// The default number of seeds.
const SEEDS: u64 = 2000;

const NOTES: &str = "\
A table shows how often each fault met each state of a process. From 2000 seeds on, no combination may be missing.

Exit code: 0 if everything held, 1 if a seed failed or a combination was never met, 2 for wrong options.";

/// Runs the simulation that tests Lariat, seed after seed.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "simulate",
    bin_name = "scripts/simulate.sh",
    max_term_width = 100,
    args_override_self = true,
    after_help = NOTES
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct Options {
    /// Run N seeds [default: 2000; 1 with --soak; with --minutes as many as there is time for].
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Start no further seed after M minutes.
    #[arg(long = "minutes", value_name = "M", value_parser = minutes)]
    pub(super) limit: Option<Duration>,
    /// The first seed; the others follow it.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// Run only this seed.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// Run N seeds at a time [default: the number of processors].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Simulate replicas that elect a leader, or divide the keys among them.
    #[arg(long)]
    pub(super) replicas: bool,
    /// Simulate ten virtual hours with 100,000 objects.
    #[arg(long = "soak")]
    pub(super) soaks: bool,
    /// The virtual time of one seed of a soak.
    #[arg(long = "hours", value_name = "H", default_value = "10", value_parser = hours)]
    pub(super) lasts: Duration,
    /// The number of objects of the first kind at the start of a soak.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(super) objects: usize,
    /// Stop at the first seed that fails.
    #[arg(long = "stop-at-first")]
    pub(super) stops: bool,
    /// Show failures as they were found, without reducing their plans.
    #[arg(long = "no-shrink", action = clap::ArgAction::SetFalse)]
    pub(super) shrinks: bool,
    /// Put warnings of the libraries into the trace.
    #[arg(long)]
    pub(super) logs: bool,
    /// Print all lines of the traces, including those of seeds that hold.
    #[arg(long)]
    pub(super) trace: bool,
}

impl Options {
    /// Returns the first seed.
    pub(super) fn first(&self) -> u64 {
        self.seed.unwrap_or(self.first)
    }

    /// Returns the number of seeds; without one in the options, time is the limit.
    pub(super) fn seeds(&self) -> u64 {
        self.counted().unwrap_or(match (self.soaks, self.limit) {
            (true, None) => 1,
            // Time is the limit then, not the seeds.
            (_, Some(_)) => u64::MAX,
            (false, None) => SEEDS,
        })
    }

    /// Returns how many seeds the user asked for, if the options have a number.
    pub(super) fn counted(&self) -> Option<u64> {
        self.seed.map(|_| 1).or(self.seeds)
    }

    /// Returns how many seeds run at a time.
    pub(super) fn threads(&self) -> usize {
        // Each run uses one thread, and no two share anything.
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(processors).max(1)
    }
}

fn minutes(text: &str) -> Result<Duration, String> {
    duration(text, 60.0)
}

fn hours(text: &str) -> Result<Duration, String> {
    duration(text, 3600.0)
}

fn duration(text: &str, unit_seconds: f64) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "it is not a number")?;
    Duration::try_from_secs_f64(number * unit_seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(arguments: &str) -> Result<Options, clap::Error> {
        let command = std::iter::once("simulate");
        Options::try_parse_from(command.chain(arguments.split_whitespace()))
    }

    /// Returns the first seed and how many there are.
    fn seeds(arguments: &str) -> (u64, u64) {
        let options = parsed(arguments).unwrap();
        (options.first(), options.seeds())
    }

    #[test]
    fn the_options_are_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_number_of_seeds_depends_on_what_limits_the_run() {
        assert_eq!(seeds(""), (0, SEEDS));
        assert_eq!(seeds("--seeds 3 --first 7"), (7, 3));
        assert_eq!(seeds("--seed 34"), (34, 1));
        assert_eq!(seeds("--soak"), (0, 1));
        assert_eq!(seeds("--minutes 0.5"), (0, u64::MAX));
        assert_eq!(seeds("--soak --minutes 1"), (0, u64::MAX));
        let limited = parsed("--minutes 1 --seeds 5").unwrap();
        assert_eq!((limited.seeds(), limited.counted()), (5, Some(5)));
        assert_eq!(limited.limit, Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_soak_has_ten_hours_and_100_000_objects_unless_the_options_differ() {
        let usual = parsed("--soak").unwrap();
        assert_eq!(usual.lasts, Duration::from_secs(36_000));
        assert_eq!(usual.objects, 100_000);
        let small = parsed("--soak --hours 0.5 --objects 9").unwrap();
        assert_eq!(small.lasts, Duration::from_secs(1800));
        assert_eq!(small.objects, 9);
    }

    #[test]
    fn failures_are_reduced_unless_the_options_forbid_it() {
        assert!(parsed("").unwrap().shrinks);
        assert!(!parsed("--no-shrink").unwrap().shrinks);
    }

    #[test]
    fn wrong_options_are_refused_with_exit_code_2() {
        for arguments in [
            "--sed 1",
            "--minutes soon",
            "--hours -1",
            "--seed 1 --seeds 2",
        ] {
            let error = parsed(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{arguments}");
        }
        let text = parsed("--sed 1").unwrap_err().to_string();
        assert!(text.contains("'--seed'"), "{text}");
        assert_eq!(parsed("--help").unwrap_err().exit_code(), 0);
    }
}
