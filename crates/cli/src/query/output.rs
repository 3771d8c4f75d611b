//! Showing an answer.

use std::fmt::Write;

use anyhow::Result;
use jiff::Timestamp;
use lariat_core::Scope;
use lariat_sql::{Count, QueryResult, Subject};
use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr;

use super::columns::Column;
use super::kinds::Kind;
use super::options::{Options, Output};

/// The cell of an object without a value.
const NONE: &str = "<none>";

/// The parts of an answer to show.
pub(super) struct Shown<'a> {
    pub(super) kind: &'a Kind,
    pub(super) namespace: Option<&'a str>,
    pub(super) columns: &'a [Column],
    pub(super) options: &'a Options,
}

impl Shown<'_> {
    /// Returns the text for stdout; notes go to stderr.
    pub(super) fn text(&self, answer: &QueryResult) -> Result<String> {
        let mut text = String::new();
        match self.options.output {
            Output::Json => writeln!(text, "{:#}", self.json(answer)?)?,
            Output::Name => self.names(answer, &mut text)?,
            Output::Table | Output::Wide => self.tables(answer, &mut text)?,
        }
        if let Some(note) = self.note(answer) {
            eprintln!("{note}");
        }
        Ok(text)
    }

    fn json(&self, answer: &QueryResult) -> Result<Json> {
        let objects: Vec<Json> = answer
            .objects
            .iter()
            .map(|found| found.decode::<Json>())
            .collect::<Result<_, _>>()?;
        let version = answer.revision.version().to_string();
        let mut list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": version}, "items": objects,
        });
        if let Some(total) = answer.total {
            list["total"] = total.into();
        }
        let summaries: Vec<Json> = self
            .summarized()
            .zip(&answer.summaries)
            .map(|(by, counts)| {
                let counts = counts
                    .iter()
                    .map(|it| json!({"value": it.value, "objects": it.objects}));
                json!({"by": by.to_string(), "counts": counts.collect::<Vec<_>>()})
            })
            .collect();
        if !summaries.is_empty() {
            list["summaries"] = summaries.into();
        }
        Ok(list)
    }

    fn names(&self, answer: &QueryResult, text: &mut String) -> Result<()> {
        let (singular, group) = (&self.kind.singular, self.kind.resource.gvk().group());
        for found in &answer.objects {
            let name = found.key.name();
            match group {
                "" => writeln!(text, "{singular}/{name}")?,
                group => writeln!(text, "{singular}.{group}/{name}")?,
            }
        }
        Ok(())
    }

    fn tables(&self, answer: &QueryResult, text: &mut String) -> Result<()> {
        if !answer.objects.is_empty() {
            text.push_str(&table(&self.rows(answer)?));
        }
        for (by, counts) in self.summarized().zip(&answer.summaries) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&table(&rows_of(by, counts)));
        }
        Ok(())
    }

    /// Returns the fields that are counted by.
    fn summarized(&self) -> impl Iterator<Item = &Subject> {
        self.options.query.summarized().iter()
    }

    fn rows(&self, answer: &QueryResult) -> Result<Vec<Vec<String>>> {
        let is_namespaced = self.kind.resource.scope() == Scope::Namespaced;
        // As kubectl does: within one namespace its column would say the same on every row.
        let has_namespace = is_namespaced && self.namespace.is_none();
        let mut heading = vec!["NAME".to_owned()];
        if has_namespace {
            heading.insert(0, "NAMESPACE".to_owned());
        }
        heading.extend(self.columns.iter().map(|column| column.heading.clone()));
        let mut rows = vec![heading];
        let now = Timestamp::try_from(lariat_core::clock::now())?;
        for found in &answer.objects {
            let object: Json = found.decode()?;
            let mut row = Vec::with_capacity(rows[0].len());
            if has_namespace {
                row.push(found.key.namespace().unwrap_or_default().to_owned());
            }
            row.push(found.key.name().to_owned());
            row.extend(self.columns.iter().map(|column| cell(column, &object, now)));
            rows.push(row);
        }
        Ok(rows)
    }

    /// Prints the number of objects, if not all are shown.
    fn note(&self, answer: &QueryResult) -> Option<String> {
        let (shown, plural) = (answer.objects.len(), self.kind.resource.plural());
        let is_table = matches!(self.options.output, Output::Table | Output::Wide);
        let place = match self.namespace {
            Some(namespace) => format!(" in {namespace}"),
            None => String::new(),
        };
        match answer.total {
            // For a table only: the other formats are read by programs, and JSON has the total itself.
            Some(total) if shown > 0 && is_table => Some(format!("{shown} of {total} {plural}")),
            Some(total) if self.summarized().next().is_some() && is_table => {
                Some(format!("{total} {plural}{place}"))
            }
            _ if shown == 0 && is_table => Some(format!("no {plural} found{place}")),
            _ => None,
        }
    }
}

fn rows_of(by: &Subject, counts: &[Count]) -> Vec<Vec<String>> {
    let heading = vec![by.to_string(), "COUNT".to_owned()];
    let rows = counts
        .iter()
        .map(|count| vec![printable(&count.value), count.objects.to_string()]);
    std::iter::once(heading).chain(rows).collect()
}

fn cell(column: &Column, object: &Json, now: Timestamp) -> String {
    // A value of an unexpected type counts as none.
    let values = column.path.find(object).unwrap_or_default();
    let texts: Vec<String> = values.into_iter().map(text).collect();
    match &texts[..] {
        [] => NONE.to_owned(),
        [time] if column.is_time => age(time, now),
        texts => printable(&texts.join(",")),
    }
}

/// Writes a value; members of an object as labels are written.
fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{key}={}", text(value)));
            members.collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

/// Replaces control characters of the terminal.
fn printable(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(printable).collect()
}

/// Returns the age of a time as kubectl prints it: with at most two units, the finer one only while it matters.
///
/// Source: `HumanDuration` in `k8s.io/apimachinery/pkg/util/duration`. An age below zero, by a clock that is behind,
/// counts as none.
fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return printable(time);
    };
    let seconds = now.as_second().saturating_sub(time.as_second()).max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match () {
        () if minutes < 2 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if hours < 3 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if days < 2 * 365 => format!("{days}d"),
        () if days < 8 * 365 => two(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

/// Writes rows under their headings, each column as wide as its widest cell.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            // Not by `{:<width$}`, which counts characters: a terminal shows some of them in two columns.
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        let line = cells.collect::<Vec<_>>().join("   ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_control_characters_are_not_printed() {
        let now: Timestamp = "2026-01-10T00:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-01-09T23:59:01Z", "59s"),
            ("2026-01-09T23:00:00Z", "60m"),
            ("2026-01-09T23:55:30Z", "4m30s"),
            ("2026-01-09T19:30:00Z", "4h30m"),
            ("2026-01-09T00:00:00Z", "24h"),
            ("2026-01-06T22:00:00Z", "3d2h"),
            ("2022-12-10T00:00:00Z", "3y32d"),
            ("2026-01-01T00:00:00Z", "9d"),
            ("2026-02-01T00:00:00Z", "0s"),
            ("yes\u{1b}", "yes\u{fffd}"),
        ] {
            assert_eq!(age(time, now), expected);
        }
        let rows: Vec<Vec<String>> = [["A", "LONG"], ["wide cell", "x"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec();
        assert_eq!(table(&rows), "A           LONG\nwide cell   x\n");
        let rows: Vec<Vec<String>> = [["A", "B"], ["\u{5e97}", "x"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec();
        assert_eq!(
            table(&rows),
            "A    B\n\u{5e97}   x\n",
            "it takes two columns"
        );
    }
}
