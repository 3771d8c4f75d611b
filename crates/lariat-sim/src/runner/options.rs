//! The options of `simulate`.

use std::time::Duration;

pub(super) const USAGE: &str = "\
Runs the simulation that Lariat is tried with, seed after seed.

Usage: scripts/simulate.sh [--seeds N] [--minutes M] [--first SEED] [--seed SEED] [--threads N]
                           [--replicas] [--soak [--hours H] [--objects N]] [--stop-at-first] [--no-shrink] [--logs] [--trace]

  --seeds N          runs N seeds (default 2000)
  --minutes M        starts no further seed after M minutes; without --seeds, as many as there is time for
  --first SEED       the first seed (default 0); the others follow it
  --seed SEED        runs one seed
  --threads N        runs N seeds at a time (default: the number of processors)
  --replicas         tries replicas that elect a leader, or divide the keys among them
  --soak             lets a seed last for ten virtual hours, with 100,000 objects (default: one seed)
  --hours H          lets the seed of a soak last for H virtual hours
  --objects N        gives the seed of a soak N objects
  --stop-at-first    stops at the first seed that fails
  --no-shrink        shows failures as they were found
  --logs             puts warnings of the libraries into the trace
  --trace            prints all lines of the traces, those of seeds that hold included

A table says how often each thing that goes wrong met each state of a process. From 2000 seeds on each of them has to.

Exit code: 0 if everything held, 1 if a seed failed or something never met, 2 for wrong options.
";

/// What `--soak` runs: so much virtual time with so many objects.
const SOAK: Duration = Duration::from_secs(10 * 60 * 60);
const SOAKED: usize = 100_000;

#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct Options {
    pub(super) seeds: u64,
    /// Whether the number of seeds was given.
    pub(super) is_counted: bool,
    pub(super) limit: Option<Duration>,
    pub(super) first: u64,
    pub(super) threads: usize,
    /// Whether the programs are replicas that share their work.
    pub(super) replicas: bool,
    pub(super) soaks: bool,
    /// How long a soak lasts, in virtual time.
    pub(super) lasts: Duration,
    /// How many objects of the first kind a soak begins with.
    pub(super) objects: usize,
    pub(super) stops: bool,
    pub(super) shrinks: bool,
    pub(super) logs: bool,
    pub(super) trace: bool,
}

impl Options {
    /// Reads the arguments of the process; none if they ask for help.
    pub(super) fn parse() -> Result<Option<Self>, lexopt::Error> {
        use lexopt::prelude::*;
        let (mut options, mut seeds) = (Self::default(), None);
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("seeds") => seeds = Some(parser.value()?.parse()?),
                Long("minutes") => {
                    let minutes: f64 = parser.value()?.parse()?;
                    options.limit = Some(hours(minutes / 60.0)?);
                }
                Long("first") => options.first = parser.value()?.parse()?,
                Long("seed") => {
                    options.first = parser.value()?.parse()?;
                    seeds = Some(1);
                }
                Long("threads") => options.threads = parser.value()?.parse()?,
                Long("replicas") => options.replicas = true,
                Long("soak") => options.soaks = true,
                Long("hours") => options.lasts = hours(parser.value()?.parse()?)?,
                Long("objects") => options.objects = parser.value()?.parse()?,
                Long("stop-at-first") => options.stops = true,
                Long("no-shrink") => options.shrinks = false,
                Long("logs") => options.logs = true,
                Long("trace") => options.trace = true,
                Long("help") | Short('h') => return Ok(None),
                _ => return Err(argument.unexpected()),
            }
        }
        options.is_counted = seeds.is_some();
        options.seeds = seeds.unwrap_or(match (options.soaks, options.limit) {
            (true, None) => 1,
            (_, Some(_)) => u64::MAX,
            (false, None) => 2000,
        });
        Ok(Some(options))
    }
}

fn hours(hours: f64) -> Result<Duration, lexopt::Error> {
    let time = Duration::try_from_secs_f64(hours * 3600.0);
    time.map_err(|error| lexopt::Error::Custom(error.into()))
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seeds: 0,
            is_counted: false,
            limit: None,
            first: 0,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            replicas: false,
            soaks: false,
            lasts: SOAK,
            objects: SOAKED,
            stops: false,
            shrinks: true,
            logs: false,
            trace: false,
        }
    }
}
