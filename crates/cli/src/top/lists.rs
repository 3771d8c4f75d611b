//! Lists as lines of a screen.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::content::Content;
use crate::console::{Tone, padded, width};

/// How much of the terminal there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Theme {
    /// Whether there are colours; reversed and bold there are always.
    pub(super) has_colours: bool,
}

impl Theme {
    pub(super) fn style(self, tone: Tone) -> Style {
        let colour = |colour: Color| {
            if self.has_colours {
                Style::new().fg(colour)
            } else {
                Style::new()
            }
        };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Dim => Style::new().add_modifier(Modifier::DIM),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Good => colour(Color::Green),
            Tone::Warn => colour(Color::Yellow),
            Tone::Bad => colour(Color::Red),
        }
    }

    pub(super) fn line(self, text: String, tone: Tone) -> Line<'static> {
        Line::styled(text, self.style(tone))
    }

    /// Returns a line in reverse over the whole width.
    pub(super) fn bar(self, text: &str, tone: Tone, room: usize) -> Line<'static> {
        let style = self.style(tone).add_modifier(Modifier::REVERSED);
        Line::styled(padded(text, room, false), style)
    }
}

/// Returns a list, or that it is empty.
pub(super) fn list_or(
    content: &Content,
    selected: Option<usize>,
    theme: Theme,
    size: Size,
    sorted: Option<(usize, char)>,
) -> Vec<Line<'static>> {
    if content.entries.is_empty() {
        let text = if content.all == 0 {
            "nothing"
        } else {
            "nothing has the filter's text"
        };
        return vec![theme.line(text.to_owned(), Tone::Dim)];
    }
    let mut lines = list(content, selected, theme, size);
    if let Some(sorted) = sorted {
        let grid = content.grid();
        lines[0] = theme.line(grid.header(&grid.fit(size.width), Some(sorted)), Tone::Dim);
    }
    lines
}

/// Returns a table with its titles.
pub(super) fn list(
    content: &Content,
    selected: Option<usize>,
    theme: Theme,
    size: Size,
) -> Vec<Line<'static>> {
    let grid = content.grid();
    let fit = grid.fit(size.width);
    let mut lines = vec![theme.line(grid.header(&fit, None), Tone::Dim)];
    let rows = size.height.saturating_sub(1);
    let first = first_shown(selected.unwrap_or_default(), content.len(), rows);
    for (at, row) in grid.rows.iter().enumerate().skip(first).take(rows) {
        let text = grid.line(&row.cells, &fit);
        lines.push(if selected == Some(at) {
            theme.bar(&text, row.tone, size.width)
        } else {
            theme.line(text, row.tone)
        });
    }
    lines
}

/// Returns lines of text, wrapped, with the selected one in sight.
pub(super) fn text(
    content: &Content,
    selected: Option<usize>,
    theme: Theme,
    size: Size,
) -> Vec<Line<'static>> {
    if content.entries.is_empty() {
        return vec![theme.line("no run of it is remembered".to_owned(), Tone::Dim)];
    }
    let mut lines = Vec::new();
    let mut at_line = 0;
    for (at, entry) in content.entries.iter().enumerate() {
        if selected == Some(at) {
            at_line = lines.len();
        }
        for part in wrapped(
            entry.row.cells.first().map_or("", String::as_str),
            size.width,
        ) {
            lines.push(if selected == Some(at) {
                theme.bar(&part, entry.row.tone, size.width)
            } else {
                theme.line(part, entry.row.tone)
            });
        }
    }
    let first = first_shown(at_line, lines.len(), size.height);
    lines.into_iter().skip(first).take(size.height).collect()
}

/// Returns the first entry to show, with the selected one centred if possible.
fn first_shown(selected: usize, all: usize, rows: usize) -> usize {
    let centred = selected.saturating_sub(rows / 2);
    // At the end the list stays full instead of ending in the middle of the screen.
    centred.min(all.saturating_sub(rows))
}

/// Breaks a line at spaces; what follows is indented below it.
pub(super) fn wrapped(line: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    if width(line) <= room {
        return vec![line.to_owned()];
    }
    let indent = " ".repeat((line.len() - line.trim_start().len() + 4).min(room / 2));
    let mut lines: Vec<String> = Vec::new();
    let mut current = String::new();
    // With the spaces, so that columns within a line stay as they are.
    for word in line.split_inclusive(' ') {
        let mut word = word.to_owned();
        if width(&current) + width(word.trim_end()) > room && !current.trim().is_empty() {
            lines.push(std::mem::replace(&mut current, indent.clone()));
        }
        // A word that is longer than a line.
        while width(&current) + width(word.trim_end()) > room {
            // Nothing fits if a wide letter meets a single cell; the loop would not end then.
            let fits: String = prefix(&word, room.saturating_sub(width(&current))).to_owned();
            if fits.is_empty() {
                break;
            }
            word = word[fits.len()..].to_owned();
            current.push_str(&fits);
            lines.push(std::mem::replace(&mut current, indent.clone()));
        }
        current.push_str(&word);
    }
    lines.push(current);
    lines
}

/// Returns the beginning of a text that fits.
fn prefix(text: &str, room: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| width(&text[..*end]) <= room).last();
    &text[..end.unwrap_or_default()]
}
