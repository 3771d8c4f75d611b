//! Tables of text.

use super::{Paint, paint, say};

/// Rows under headings, each column as wide as its widest cell.
#[derive(Debug)]
pub struct TextTable {
    /// The first one is the headings.
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|&heading| heading.to_owned());
        Self {
            rows: vec![headings.collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints the table, indented; columns of numbers are right-aligned.
    pub fn print(&self) {
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().enumerate();
            let cells = cells.map(|(column, cell)| self.padded(column, cell));
            let line = cells.collect::<Vec<_>>().join("  ");
            let line = line.trim_end();
            if number == 0 {
                say(format_args!("  {}", paint(Paint::Bold, line, 0)));
            } else {
                say(format_args!("  {line}"));
            }
        }
    }

    fn padded(&self, column: usize, cell: &str) -> String {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let width = cells.clone().map(|cell| cell.chars().count()).max();
        let width = width.unwrap_or(0);
        let is_number = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit());
        let mut values = cells.skip(1).filter(|cell| !cell.is_empty());
        if values.all(is_number) {
            format!("{cell:>width$}")
        } else {
            format!("{cell:<width$}")
        }
    }
}
