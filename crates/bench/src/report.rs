//! What was measured, as a table or as JSON.

use serde::{Deserialize, Serialize};

/// One run of one subject. What does not apply is left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Row {
    pub(crate) bench: String,
    pub(crate) case: String,
    pub(crate) subject: String,
    pub(crate) n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handlers: Option<usize>,
    /// Changes the server sends a second, where it sends them at a pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<usize>,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    /// What the first filling cost, where something else is measured after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sync_cpu_s: Option<f64>,
    /// Memory when the measured part began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before_rss_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peak_rss_mb: Option<f64>,
    /// Memory some seconds after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steady_rss_mb: Option<f64>,
    /// What a waiting key holds beyond itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_key: Option<f64>,
    /// What a cached object holds, as the subject counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_object: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handler_runs: Option<u64>,
    /// Changes without a run of their own, because a later change came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) merged: Option<u64>,
    /// The longest time one get took, whatever the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) longest_get_us: Option<f64>,
    /// The longest time it took to take hold of all objects, whatever the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) longest_list_us: Option<f64>,
    /// The longest of both during which the reader had to wait for a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blocked_us: Option<f64>,
    /// What there is on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_mb: Option<f64>,
    pub(crate) ops_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_us: Option<f64>,
    /// The lists and watches that the subject must not have asked for.
    ///
    /// If there are some, the row has measured something else.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) void: usize,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Row {
    /// Says how times in microseconds are spread.
    pub(crate) fn spread(&mut self, mut times: Vec<f64>) {
        times.sort_unstable_by(f64::total_cmp);
        let last = times.len().saturating_sub(1);
        // The nearest rank below, without interpolation: every value is one that was measured.
        let at = |share: f64| times.get((last as f64 * share) as usize).copied();
        (self.p50_us, self.p99_us) = (at(0.5), at(0.99));
    }
}

/// A column of a table: its title, and what stands in it.
pub(crate) type Column = (&'static str, fn(&Row) -> Option<f64>);

pub(crate) const RATE: Column = ("rate/s", |row| row.rate.map(|rate| rate as f64));
pub(crate) const WALL: Column = ("wall s", |row| Some(row.wall_s));
pub(crate) const CPU: Column = ("cpu s", |row| Some(row.cpu_s));
pub(crate) const SYNC_CPU: Column = ("sync cpu s", |row| row.sync_cpu_s);
pub(crate) const CPU_PER_OP: Column = ("cpu µs/op", |row| Some(row.cpu_s * 1e6 / row.n as f64));
pub(crate) const OPS: Column = ("ops/s", |row| Some(row.ops_per_s));
pub(crate) const BEFORE: Column = ("before MB", |row| row.before_rss_mb);
pub(crate) const PEAK: Column = ("peak MB", |row| row.peak_rss_mb);
pub(crate) const STEADY: Column = ("steady MB", |row| row.steady_rss_mb);
pub(crate) const PER_KEY: Column = ("bytes/key", |row| row.bytes_per_key);
pub(crate) const PER_OBJECT: Column = ("bytes/object", |row| row.bytes_per_object);
pub(crate) const HANDLER_RUNS: Column = ("runs", |row| row.handler_runs.map(|runs| runs as f64));
pub(crate) const MERGED: Column = ("merged", |row| row.merged.map(|merged| merged as f64));
pub(crate) const GET: Column = ("get µs", |row| row.longest_get_us);
pub(crate) const LIST: Column = ("list µs", |row| row.longest_list_us);
pub(crate) const BLOCKED: Column = ("blocked µs", |row| row.blocked_us);
pub(crate) const FILE: Column = ("file MB", |row| row.file_mb);
pub(crate) const P50: Column = ("p50 µs", |row| row.p50_us);
pub(crate) const P99: Column = ("p99 µs", |row| row.p99_us);

/// The width of a column for one value, and for a median with minimum and maximum.
const NARROW: usize = 12;
const WIDE: usize = 22;

/// Prints a row for each case and subject, or a line of JSON for each run.
#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
    width: usize,
    columns: &'static [Column],
}

impl Report {
    pub(crate) fn begin(json: bool, runs: usize, columns: &'static [Column]) -> Self {
        let width = if runs > 1 { WIDE } else { NARROW };
        if !json {
            print!(
                "{:<14} {:<20} {:>9} {:>8}",
                "case", "subject", "n", "handlers"
            );
            for (title, _) in columns {
                print!(" {title:>width$}");
            }
            println!();
        }
        Self {
            json,
            width,
            columns,
        }
    }

    /// Prints one run, where each is printed.
    pub(crate) fn run(&self, row: &Row) {
        if self.json {
            println!("{}", serde_json::to_string(row).unwrap_or_default());
        }
    }

    /// Prints the medians of the valid runs of a case and a subject, with their range.
    pub(crate) fn case(&self, runs: &[Row]) {
        if !self.json && !runs.is_empty() {
            println!("{}", self.line(runs));
        }
    }

    fn line(&self, runs: &[Row]) -> String {
        let row = &runs[0];
        let handlers = row
            .handlers
            .map_or_else(|| "–".to_owned(), |handlers| handlers.to_string());
        let mut line = format!(
            "{:<14} {:<20} {:>9} {handlers:>8}",
            row.case, row.subject, row.n
        );
        let valid: Vec<&Row> = runs.iter().filter(|row| row.void == 0).collect();
        for (_, value) in self.columns {
            let values = valid.iter().filter_map(|row| value(row)).collect();
            line += &format!(" {:>width$}", spread(values), width = self.width);
        }
        if valid.len() < runs.len() {
            let (void, all) = (runs.len() - valid.len(), runs.len());
            line += &format!("  void: {void} of {all} runs, pods were listed or watched again");
        }
        line
    }
}

/// Writes the median of values, and their range if they differ.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let [least, .., most] = values[..] else {
        return text(values.first().copied());
    };
    // The median, because one disturbed run must not move the result.
    let half = values.len() / 2;
    // For an odd number both indexes are the middle one.
    let median = text(Some(f64::midpoint(
        values[half],
        values[(values.len() - 1) / 2],
    )));
    if least == most {
        return median;
    }
    format!("{median} [{}–{}]", text(Some(least)), text(Some(most)))
}

/// Writes a number with about three digits that count.
fn text(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.3}"),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_listed_or_watched_again_count_for_no_median() {
        let run = |wall_s: f64, void: usize| Row {
            case: "typed".to_owned(),
            subject: "lariat".to_owned(),
            wall_s,
            void,
            ..Row::default()
        };
        let report = Report {
            json: false,
            width: 6,
            columns: &[WALL],
        };
        let line = report.line(&[run(1.0, 0), run(50.0, 2), run(3.0, 0)]);
        assert!(
            line.contains("2.000 [1.000–3.000]  void: 1 of 3 runs"),
            "{line}"
        );
        let line = report.line(&[run(1.0, 1)]);
        assert!(line.contains("–  void: 1 of 1 runs"), "{line}");
        assert!(!report.line(&[run(1.0, 0)]).contains("void"));
        let json = serde_json::to_string(&run(1.0, 0)).unwrap();
        assert!(!json.contains("void"), "{json}");
    }

    #[test]
    fn several_runs_are_reported_by_their_median_and_range() {
        assert_eq!(spread(vec![]), "–");
        assert_eq!(spread(vec![3.0]), "3.000");
        assert_eq!(spread(vec![200.0; 3]), "200");
        assert_eq!(spread(vec![12.0, 9.5, 150.0]), "12.0 [9.500–150]");
        assert_eq!(spread(vec![40.0, 10.0, 20.0, 11.0]), "15.5 [10.0–40.0]");
    }
}
