//! Tables of text.

use super::{Paint, paint, say};

/// Rows under headings, each column as wide as its widest cell.
#[derive(Debug)]
pub struct TextTable {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table.
    #[must_use]
    pub fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints the table, indented; columns of numbers are right-aligned.
    pub fn print(&self) {
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| self.width(column))
            .collect();
        let headings: Vec<String> = self
            .headings
            .iter()
            .map(|&heading| heading.to_owned())
            .collect();
        let headings = paint(Paint::Bold, self.line(&headings, &widths), 0);
        say(format_args!("  {headings}"));
        for row in &self.rows {
            say(format_args!("  {}", self.line(row, &widths)));
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(self.headings[column].chars().count())
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let cells = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                if self.is_numeric(column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self
            .rows
            .iter()
            .filter_map(|row| row.get(column))
            .filter(|c| !c.is_empty());
        cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
    }
}
