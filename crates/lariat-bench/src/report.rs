//! What was measured, as a table or as JSON.

use serde::{Deserialize, Serialize};

/// One run of one subject.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) bench: String,
    pub(crate) case: String,
    pub(crate) subject: String,
    pub(crate) n: usize,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peak_rss_mb: Option<f64>,
    /// What a waiting key holds beyond itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_key: Option<f64>,
    pub(crate) ops_per_s: f64,
    /// How late delayed keys came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) p50_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) p99_us: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
}

impl Report {
    pub(crate) fn begin(json: bool) -> Self {
        if !json {
            println!(
                "{:<13} {:<18} {:>9} {:>9} {:>8} {:>12} {:>10} {:>11} {:>11}",
                "case",
                "subject",
                "n",
                "wall s",
                "cpu s",
                "ops/s",
                "bytes/key",
                "p50 late",
                "p99 late"
            );
        }
        Self { json }
    }

    pub(crate) fn row(&mut self, row: &Row) {
        if self.json {
            println!("{}", serde_json::to_string(row).unwrap_or_default());
            return;
        }
        let optional = |value: Option<f64>, unit: &str| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}{unit}"))
        };
        println!(
            "{:<13} {:<18} {:>9} {:>9.3} {:>8.2} {:>12.0} {:>10} {:>11} {:>11}",
            row.case,
            row.subject,
            row.n,
            row.wall_s,
            row.cpu_s,
            row.ops_per_s,
            optional(row.bytes_per_key, ""),
            optional(row.p50_us, " µs"),
            optional(row.p99_us, " µs"),
        );
    }
}
