//! Cells of HorizontalPodAutoscalers.

use super::row::{NONE, UNKNOWN};
use crate::printers::source::Row;

/// The number of metrics that are shown.
const SHOWN: usize = 2;

/// Returns the present and the wanted value of the first metrics.
pub(super) fn targets(scaler: Row<'_>) -> String {
    let specs: Vec<Row<'_>> = scaler.rows("/spec/metrics").collect();
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let texts: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(*spec, scaler.at(&format!("/status/currentMetrics/{index}"))))
        .collect();
    let shown = texts[..texts.len().min(SHOWN)].join(", ");
    match texts.len() {
        count if count > SHOWN => format!("{shown} + {} more...", count - SHOWN),
        _ => shown,
    }
}

fn metric(spec: Row<'_>, status: Row<'_>) -> String {
    let member = match spec.text("/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = spec.at(&format!("/{member}/target"));
    let current = status.at(&format!("/{member}/current"));
    // A status of the same type says what there is; Go prints the amount in it even if that is nil.
    let nil = if status.has(&format!("/{member}")) {
        "<nil>"
    } else {
        UNKNOWN
    };
    let average = target.scalar_or("/averageValue", "");
    let values = if !average.is_empty() {
        let current = |nil| current.scalar_or("/averageValue", nil);
        match member {
            "external" | "object" => format!("{}/{average} (avg)", current(UNKNOWN)),
            _ => format!("{}/{average}", current(nil)),
        }
    } else if matches!(member, "resource" | "containerResource") {
        let percent = |row: Row<'_>, other: &str| match row.get("/averageUtilization").as_i64() {
            Some(percent) => format!("{percent}%"),
            None => other.to_owned(),
        };
        format!(
            "{}/{}",
            percent(current, UNKNOWN),
            percent(target, "<auto>")
        )
    } else {
        let wanted = target.scalar_or("/value", "");
        format!("{}/{wanted}", current.scalar_or("/value", nil))
    };
    match spec.text(&format!("/{member}/name")) {
        "" => values,
        name => format!("{name}: {values}"),
    }
}
