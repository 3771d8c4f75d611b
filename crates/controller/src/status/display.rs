//! Formats a status as a table for a terminal.

use std::fmt::{self, Write as _};
use std::slice;

use super::status::{ControllerStatus, FactoryStatus, HandlerStatus};

impl fmt::Display for FactoryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_table(&self.0, f)
    }
}

impl fmt::Display for ControllerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_table(slice::from_ref(self), f)
    }
}

/// A line of the table.
struct Row {
    /// Whether the line is a handler's. Beyond the first two columns, kinds and handlers have columns of their own.
    is_handler: bool,
    cells: Vec<String>,
    /// A text below the line, in no column.
    note: Option<String>,
}

/// How many columns kinds and handlers share.
const SHARED: usize = 2;

fn write_table(controllers: &[ControllerStatus], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rows: Vec<Row> = controllers.iter().flat_map(rows).collect();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            f.write_char('\n')?;
        }
        write_row(row, &rows, f)?;
    }
    Ok(())
}

fn write_row(row: &Row, rows: &[Row], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut line = String::new();
    for (column, cell) in row.cells.iter().enumerate() {
        let width = width_of(column, row.is_handler, rows);
        if width > 0 {
            // Each cell is written with the space after it; the space at the end of the line is cut below.
            write!(line, "{cell:width$}  ")?;
        }
    }
    f.write_str(line.trim_end())?;
    match &row.note {
        Some(note) => write!(f, "\n  {note}"),
        None => Ok(()),
    }
}

fn width_of(column: usize, is_handler: bool, rows: &[Row]) -> usize {
    let alike = rows
        .iter()
        .filter(|row| column < SHARED || row.is_handler == is_handler);
    let cells = alike.filter_map(|row| row.cells.get(column));
    let widths = cells.map(|cell| cell.chars().count());
    widths.max().unwrap_or(0)
}

fn rows(controller: &ControllerStatus) -> Vec<Row> {
    let mut rows = vec![kind(controller)];
    rows.extend(controller.handlers.iter().map(handler));
    rows
}

fn kind(status: &ControllerStatus) -> Row {
    let (cache, queue) = (&status.cache, &status.queue);
    let phase = match (&cache.blind, cache.interrupted) {
        (Some(blind), _) => blind.to_string(),
        (None, Some(since)) if cache.is_stale() => {
            format!("{}, no watch for {}s", cache.phase, since.as_secs())
        }
        _ => cache.phase.to_string(),
    };
    let mut busy = match status.workers {
        Some(workers) => format!("busy {}/{workers}", queue.processing),
        None => "not running".to_owned(),
    };
    for (calls, are) in [(status.blocked, "blocked"), (status.leaving, "leaving")] {
        if calls > 0 {
            let _ = write!(busy, ", {calls} {are}");
        }
    }
    let mut cells = vec![
        cache.gvk.to_string(),
        phase,
        format!("objects {}", cache.objects),
        format!("ready {}", queue.depth()),
        format!("delayed {}", queue.delayed),
        busy,
    ];
    if !status.hot_loops.is_empty() {
        cells.push(format!("hot loops {}", status.hot_loops.len()));
    }
    let error = cache.last_error.as_ref();
    Row {
        is_handler: false,
        cells,
        note: error.map(|error| format!("last error: {error}")),
    }
}

fn handler(status: &HandlerStatus) -> Row {
    let mut cells = vec![
        format!("  {}", status.name),
        state(status),
        format!("calls {}", status.calls),
        format!("failed {}", status.failures),
        format!("failing {}", status.failing),
        format!("given up {}", status.given_up),
    ];
    if status.calls > 0 {
        let quantile = |share| status.times.quantile(share);
        cells.push(format!("p50 {:.1?}", quantile(0.5)));
        cells.push(format!("p99 {:.1?}", quantile(0.99)));
    }
    Row {
        is_handler: true,
        cells,
        note: None,
    }
}

/// Returns why a handler is not called, and how many keys wait for it.
fn state(status: &HandlerStatus) -> String {
    let why = if status.is_paused {
        "paused"
    } else if status.waits_for_caches {
        "waits for caches"
    } else {
        ""
    };
    let keys = match status.waiting {
        0 => return why.to_owned(),
        1 => "1 key waits".to_owned(),
        keys => format!("{keys} keys wait"),
    };
    if why.is_empty() {
        keys
    } else {
        format!("{why}, {keys}")
    }
}
