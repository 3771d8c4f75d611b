//! The keys of a controller, each with all that is known of it.

use lariat_console::api::ControllerDetail;

use crate::console::duration;

/// A run that takes longer, in seconds, is slow.
const SLOW: f64 = 1.0;

/// A key of a controller, with all that is known of it.
#[derive(Debug, Default)]
pub(super) struct KeyRow {
    pub(super) key: String,
    pub(super) states: Vec<&'static str>,
    pub(super) handlers: Vec<String>,
    pub(super) details: Vec<String>,
    pub(super) since: String,
    pub(super) is_bad: bool,
}

/// Collects the keys in the order in which they are worth a look.
#[derive(Debug, Default)]
pub(super) struct KeyRows(Vec<KeyRow>);

impl KeyRows {
    fn add(&mut self, key: &str, state: &'static str) -> &mut KeyRow {
        // Searched one by one, since a console lists only some dozens of keys.
        let at = self
            .0
            .iter()
            .position(|row| row.key == key)
            .unwrap_or_else(|| {
                self.0.push(KeyRow {
                    key: key.to_owned(),
                    ..KeyRow::default()
                });
                self.0.len() - 1
            });
        let row = &mut self.0[at];
        if !row.states.contains(&state) {
            row.states.push(state);
        }
        row
    }

    fn has(&self, key: &str, state: &str) -> bool {
        let mut rows = self.0.iter();
        rows.any(|row| row.key == key && row.states.contains(&state))
    }
}

impl KeyRow {
    fn handler(&mut self, name: &str) {
        if !self.handlers.iter().any(|known| known == name) {
            self.handlers.push(name.to_owned());
        }
    }

    fn since(&mut self, seconds: f64) {
        if self.since.is_empty() {
            self.since = duration(seconds);
        }
    }
}

/// Returns the keys of a controller that are worth a look, most urgent first.
pub(super) fn key_rows(detail: &ControllerDetail) -> Vec<KeyRow> {
    let mut rows = KeyRows::default();
    for it in &detail.in_progress {
        let row = rows.add(&it.key, "running");
        it.handler.iter().for_each(|handler| row.handler(handler));
        row.since(it.lasts);
    }
    for it in &detail.loops {
        let row = rows.add(&it.key, "hot loop");
        row.details.push(it.pattern.clone());
        row.is_bad = true;
    }
    add_failed(&mut rows, detail);
    for it in &detail.queued {
        let state = match &it.state[..] {
            "ready" => "due",
            "delayed" => "delayed",
            "deferred" => "deferred",
            // A key in processing that was added again; it is also among those in progress.
            _ => "running",
        };
        let row = rows.add(&it.key, state);
        for lane in &it.lanes {
            row.handler(&lane.handler);
        }
        if it.state == "ready" {
            row.since(it.due_for);
            row.details.push(format!("{} priority", it.priority));
        }
        let next = it
            .lanes
            .iter()
            .map(|lane| lane.due_in)
            .filter(|due| *due > 0.0)
            .min_by(f64::total_cmp);
        // A failing key says already when it is tried again.
        if let Some(next) = next.filter(|_| !row.is_bad) {
            row.details.push(format!("due in {}", duration(next)));
        }
    }
    for it in detail.slowest.iter().filter(|it| it.took >= SLOW) {
        // The slowest run of a key comes first, and the others say less.
        if rows.has(&it.key, "slow") {
            continue;
        }
        let row = rows.add(&it.key, "slow");
        row.handler(&it.handler);
        row.details.push(format!("took {}", duration(it.took)));
    }
    rows.0
}

/// Adds the keys that handlers fail for, and those that were given up.
fn add_failed(rows: &mut KeyRows, detail: &ControllerDetail) {
    for it in &detail.failing_keys {
        let row = rows.add(&it.key, "failing");
        row.handler(&it.handler);
        let times = (it.failures > 0).then(|| format!("{}x", it.failures));
        let again = it
            .retry_in
            .map(|after| format!("again in {}", duration(after)));
        let parts: Vec<String> = times.into_iter().chain(again).collect();
        // The error first: it says the most where there is little room.
        let parts = parts.join(", ");
        row.details.push(match &it.error {
            Some(error) => format!("{error} ({parts})"),
            None => parts,
        });
        row.is_bad = true;
    }
    for it in &detail.given_up_keys {
        let row = rows.add(&it.key, "given up");
        row.handler(&it.handler);
        row.since(it.ago);
        let error = it.error.iter().cloned();
        row.details.extend(error);
        row.is_bad = true;
    }
}
