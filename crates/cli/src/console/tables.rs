//! The tables of an overview.

use lariat_console::api::{Cache, Check, Controller, Guard, KindRef, Lease, Overview, Shards};

use super::grid::{Column, Grid, Row, Tone};
use super::kinds::full_name;
use super::words::{amount, bytes, duration, rate};

/// How many samples a sparkline shows.
const SPARKS: usize = 20;

/// The columns of controllers.
const CONTROLLERS: [Column; 10] = [
    Column::text("CONTROLLER", 0),
    Column::number("DUE", 0),
    Column::number("DELAYED", 4),
    Column::number("BUSY", 1),
    Column::number("CALLS/S", 2),
    Column::number("ERRORS/S", 0),
    Column::number("FAILING", 3),
    Column::number("OBJECTS", 5),
    Column::text("STATE", 6),
    Column::text("TREND", 7),
];

/// The columns of caches.
const CACHES: [Column; 8] = [
    Column::text("CACHE", 0),
    Column::number("OBJECTS", 0),
    Column::number("SIZE", 1),
    Column::text("STATE", 0),
    Column::number("HEARD", 3),
    Column::number("LISTS", 5),
    Column::number("WATCHES", 4),
    Column::text("ERROR", 2),
];

/// Names kinds, with the factory where a program has several.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    has_factories: bool,
}

impl Names {
    pub(crate) fn of(overview: &Overview) -> Self {
        let controllers = overview.controllers.iter().map(|it| &it.kind.context);
        let mut contexts = controllers.chain(overview.caches.iter().map(|it| &it.kind.context));
        let first = contexts.next();
        Self {
            has_factories: first.is_some_and(|first| contexts.any(|other| other != first)),
        }
    }

    pub(crate) fn name(self, kind: &KindRef) -> String {
        if self.has_factories {
            format!("{}:{}", kind.context, full_name(kind))
        } else {
            full_name(kind)
        }
    }
}

/// Returns the table of controllers.
pub(crate) fn controllers(controllers: &[&Controller], names: Names) -> Grid {
    Grid {
        columns: CONTROLLERS.to_vec(),
        rows: controllers.iter().map(|it| controller(it, names)).collect(),
    }
}

/// Returns the table of caches.
pub(crate) fn caches(caches: &[&Cache], names: Names) -> Grid {
    Grid {
        columns: CACHES.to_vec(),
        rows: caches.iter().map(|it| cache(it, names)).collect(),
    }
}

/// Returns the checks, leases, shards, guards and hot loops.
pub(crate) fn facts(overview: &Overview, names: Names) -> Grid {
    let mut rows: Vec<Row> = Vec::new();
    rows.extend(overview.health.checks.iter().map(check));
    rows.extend(overview.leases.iter().map(lease));
    rows.extend(overview.shards.iter().map(shards));
    rows.extend(overview.guards.iter().map(guard));
    rows.extend(overview.hot_loops.iter().map(|it| {
        let what = format!("{} {}", names.name(&it.kind), it.key);
        row(["hot loop", &what, "found", &it.pattern], Tone::Bad)
    }));
    if let Some(planned) = overview.planned {
        let count = format!("{planned} planned");
        let text = "plan mode: nothing is written";
        rows.push(row(["plan", "writes", &count, text], Tone::Plain));
    }
    Grid {
        columns: vec![
            Column::text("WHAT", 0),
            Column::text("NAME", 0),
            Column::text("STATE", 0),
            Column::text("DETAIL", 1),
        ],
        rows,
    }
}

/// Returns how many calls a second a controller makes, and how many of them fail.
pub(crate) fn rates(controller: &Controller) -> (f64, f64) {
    let handlers = controller.handlers.iter();
    handlers.fold((0.0, 0.0), |(calls, failures), handler| {
        (calls + handler.rate, failures + handler.failure_rate)
    })
}

/// Returns for how many keys the handlers of a controller fail.
pub(crate) fn failing(controller: &Controller) -> usize {
    controller.handlers.iter().map(|it| it.failing).sum()
}

/// Returns how many keys the handlers of a controller have given up.
pub(crate) fn given_up(controller: &Controller) -> usize {
    controller.handlers.iter().map(|it| it.given_up).sum()
}

/// A call that runs for longer, in seconds, is worth a look.
const LONG_CALL: f64 = 60.0;

fn controller(controller: &Controller, names: Names) -> Row {
    let queue = &controller.queue;
    let (calls, failures) = rates(controller);
    let (failing, given_up) = (failing(controller), given_up(controller));
    let blocked = controller
        .handlers
        .iter()
        .filter(|it| it.blocked.is_some())
        .count();
    // The most urgent first, because there is room for one word.
    let state = match (controller.hot_loops, controller.workers, blocked) {
        _ if given_up > 0 => format!("{} given up", number(given_up)),
        (1.., ..) => "hot loop".to_owned(),
        (_, None, _) => "not running".to_owned(),
        _ if queue.longest >= LONG_CALL => format!("a call for {}", duration(queue.longest)),
        (_, _, 1..) if controller.phase == "synced" => "handler blocked".to_owned(),
        _ => controller.phase.clone(),
    };
    // The rate counts too: a key that has succeeded again since is no longer among the failing ones.
    let is_bad = failing > 0 || given_up > 0 || failures > 0.0;
    let tone = if is_bad || controller.hot_loops > 0 {
        Tone::Bad
    } else if state != "synced" {
        Tone::Warn
    } else {
        Tone::Plain
    };
    let busy = match controller.workers {
        Some(workers) => format!("{}/{workers}", queue.processing),
        None => "-".to_owned(),
    };
    let cells = vec![
        names.name(&controller.kind),
        number(queue.ready),
        number(queue.delayed),
        busy,
        rate(calls),
        rate(failures),
        number(failing),
        number(controller.objects),
        state,
        sparks(controller),
    ];
    Row { cells, tone }
}

fn cache(cache: &Cache, names: Names) -> Row {
    let tone = match (&cache.last_error, cache.synced && !cache.stale) {
        // Also if it is synced: a cache keeps its objects while its watch fails, and they grow old.
        (Some(_), _) => Tone::Bad,
        (None, false) => Tone::Warn,
        (None, true) => Tone::Plain,
    };
    let state = match cache.blind {
        Some(lasts) => format!("{} for {}", cache.phase, duration(lasts)),
        None if cache.stale => format!("{}, stale", cache.phase),
        None => cache.phase.clone(),
    };
    let retry = cache
        .retry_in
        .map(|after| format!("again in {}", duration(after)));
    let error: Vec<String> = cache.last_error.iter().cloned().chain(retry).collect();
    let heard = cache
        .last_received
        .map_or_else(|| "-".to_owned(), |ago| format!("{} ago", duration(ago)));
    let cells = vec![
        names.name(&cache.kind),
        number(cache.objects),
        bytes(cache.bytes),
        state,
        heard,
        amount(cache.loads),
        amount(cache.watches),
        error.join(", "),
    ];
    Row { cells, tone }
}

fn check(check: &Check) -> Row {
    let (state, tone) = if check.ok {
        ("ok", Tone::Good)
    } else {
        ("failed", Tone::Bad)
    };
    row(
        [
            "check",
            &check.name,
            state,
            check.message.as_deref().unwrap_or_default(),
        ],
        tone,
    )
}

fn lease(lease: &Lease) -> Row {
    let holder = lease.holder.as_deref().unwrap_or("nothing");
    let detail = match &lease.state[..] {
        "leading" => format!("as {}", lease.identity),
        _ => format!("held by {holder}; this is {}", lease.identity),
    };
    row(["lease", &lease.lease, &lease.state, &detail], Tone::Plain)
}

fn shards(shards: &Shards) -> Row {
    let (state, tone) = if shards.member {
        ("member", Tone::Plain)
    } else {
        ("waiting", Tone::Warn)
    };
    row(
        [
            "shards",
            &shards.context,
            state,
            &format!("of {}", shards.members),
        ],
        tone,
    )
}

fn guard(guard: &Guard) -> Row {
    let name = format!("{}: {}", guard.operator, guard.reconcilers.join(", "));
    if guard.tripped {
        let reason = guard.reason.as_deref().unwrap_or("a budget was exceeded");
        let detail = format!("{reason}; {} refused", guard.refused);
        return row(["guard", &name, "tripped", &detail], Tone::Bad);
    }
    row(
        ["guard", &name, "ok", &guard.budgets.join(", ")],
        Tone::Good,
    )
}

fn row(cells: [&str; 4], tone: Tone) -> Row {
    Row {
        cells: cells.map(str::to_owned).to_vec(),
        tone,
    }
}

pub(crate) fn number(number: usize) -> String {
    amount(u64::try_from(number).unwrap_or(u64::MAX))
}

/// Draws the last depths of a queue, newest on the right.
fn sparks(controller: &Controller) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let samples = &controller.samples;
    let last = &samples[samples.len().saturating_sub(SPARKS)..];
    let most = last
        .iter()
        .map(|sample| sample.ready)
        .max()
        .unwrap_or_default();
    let bar = |ready: usize| match ready {
        // Apart from the others, because `most` is zero too if all samples are.
        0 => BARS[0],
        ready => {
            BARS[(ready * (BARS.len() - 1))
                // Rounded up, so that a short queue differs from an empty one.
                .div_ceil(most)
                .min(BARS.len() - 1)]
        }
    };
    last.iter().map(|sample| bar(sample.ready)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    #[test]
    fn controllers_have_their_rates_and_what_is_wrong() {
        let mut overview = samples::overview();
        overview.controllers[1].workers = None;
        overview.controllers[2].handlers[0].blocked = Some("paused".to_owned());
        let all: Vec<&Controller> = overview.controllers.iter().collect();
        let grid = controllers(&all, Names::of(&overview));
        let tones: Vec<Tone> = grid.rows.iter().map(|row| row.tone).collect();
        assert_eq!(tones, [Tone::Bad, Tone::Warn, Tone::Warn]);
        let expected = "\
CONTROLLER       DUE  DELAYED  BUSY  CALLS/S  ERRORS/S  FAILING  OBJECTS  STATE            TREND
Deployment.apps   12        3   1/5     25.0       0.3        2      12k  1 given up       ▁▂▃▄▅▆▇█
Pod                0        3     -     25.0         0        0      12k  not running      ▁▂▃▄▅▆▇█
Shop.demo.dev      2        3   1/5     25.0         0        0      12k  handler blocked  ▁▂▃▄▅▆▇█
";
        assert_eq!(grid.text(120), expected);
    }

    #[test]
    fn given_up_keys_and_long_calls_are_marked_in_the_table() {
        let mut overview = samples::overview();
        overview.controllers[1].handlers[0].given_up = 3;
        overview.controllers[2].queue.longest = 720.0;
        let all: Vec<&Controller> = overview.controllers.iter().collect();
        let grid = controllers(&all, Names::of(&overview));
        let tones: Vec<Tone> = grid.rows.iter().map(|row| row.tone).collect();
        assert_eq!(tones, [Tone::Bad, Tone::Bad, Tone::Warn]);
        assert!(grid.text(120).contains("a call for 12m00s"));
    }

    #[test]
    fn what_is_wrong_is_in_the_facts() {
        let overview = samples::trouble();
        let text = facts(&overview, Names::of(&overview)).text(200);
        for expected in [
            "check     handlers                  failed   deploy has been called for Deployment shop/web for 12m",
            "lease     shops/shop-operator       leading  as pod-0",
            "guard     shop: shops               tripped  an 11th delete within 60s; 4 refused",
            "hot loop  Deployment.apps shop/web  found    two handlers write spec.replicas in turns",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_cache_says_how_far_it_is() {
        let mut overview = samples::overview();
        overview.caches[2].last_error = Some("403 Forbidden".to_owned());
        overview.caches[2].retry_in = Some(4.0);
        overview.caches[2].kind.context = "other".to_owned();
        let all: Vec<&Cache> = overview.caches.iter().collect();
        let text = caches(&all, Names::of(&overview)).text(200);
        for expected in [
            ":Pod",
            "listing, 400 of 20000",
            "12.3 MiB",
            "403 Forbidden, again in 4.0s",
            "other:Shop",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
