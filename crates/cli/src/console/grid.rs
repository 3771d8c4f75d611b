//! Tables that fit a width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: usize = 2;

/// How narrow a column of texts becomes before another column is left out.
const NARROW: usize = 12;

/// The same for a column that stays, which says what the row is about.
const NAMES: usize = 24;

/// What a line is about, for its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Dim,
    Strong,
    Good,
    Warn,
    Bad,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Whether it has numbers, which stand on the right.
    is_number: bool,
    /// Which columns are left out first where there is little room: those of a high rank. Rank 0 stays.
    rank: u8,
}

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    pub(crate) tone: Tone,
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// The columns that are shown, and how wide they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fit(Vec<(usize, usize)>);

impl Column {
    pub(crate) const fn text(title: &'static str, rank: u8) -> Self {
        Self {
            title,
            is_number: false,
            rank,
        }
    }

    pub(crate) const fn number(title: &'static str, rank: u8) -> Self {
        Self {
            title,
            is_number: true,
            rank,
        }
    }
}

impl Grid {
    /// Chooses the columns for a width.
    pub(crate) fn fit(&self, room: usize) -> Fit {
        let widest = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            let widest = cells.map(|cell| width(cell)).max().unwrap_or_default();
            widest.max(width(self.columns[at].title))
        };
        let mut kept: Vec<(usize, usize)> =
            (0..self.columns.len()).map(|at| (at, widest(at))).collect();
        let least = |(at, width): &(usize, usize)| match self.columns[*at] {
            Column {
                is_number: true, ..
            } => *width,
            Column { rank: 0, .. } => NAMES.min(*width),
            _ => NARROW.min(*width),
        };
        let gaps = |count: usize| GAP * count.saturating_sub(1);
        // First whole columns are left out, until the others fit at their least width; then those are cut as needed.
        while kept.iter().map(least).sum::<usize>() + gaps(kept.len()) > room {
            let ranks = kept.iter().enumerate().rev();
            let Some((last, _)) = ranks.max_by_key(|(_, (at, _))| self.columns[*at].rank) else {
                break;
            };
            // Only columns that say what the row is about are left, which are better cut than missing.
            if self.columns[kept[last].0].rank == 0 {
                break;
            }
            kept.remove(last);
        }
        let room = room.saturating_sub(gaps(kept.len()));
        loop {
            let over = kept
                .iter()
                .map(|(_, width)| width)
                .sum::<usize>()
                .saturating_sub(room);
            let texts = kept.iter_mut();
            let texts = texts.filter(|(at, _)| !self.columns[*at].is_number);
            // Of what is wide those of a high rank are cut first.
            let widest = texts.max_by_key(|(at, width)| {
                let is_wide = *width > NARROW;
                (is_wide, self.columns[*at].rank * u8::from(is_wide), *width)
            });
            match widest {
                // One cell at a time from the widest, so that cut columns end up about equally wide.
                Some((_, width)) if over > 0 && *width > 1 => *width -= 1,
                _ => break,
            }
        }
        Fit(kept)
    }

    /// Returns the line of titles; `sorted` is the column with a mark.
    pub(crate) fn header(&self, fit: &Fit, sorted: Option<(usize, char)>) -> String {
        let titles = self.columns.iter().map(|column| column.title.to_owned());
        let line = self.line(&titles.collect::<Vec<_>>(), fit);
        let Some((by, mark)) = sorted else {
            return line;
        };
        // The mark stands in a gap: before the title of numbers, and behind that of texts.
        let mut end = 0;
        for (at, width) in &fit.0 {
            let (start, column) = (end, self.columns[*at]);
            end += width + GAP;
            if *at == by {
                let title = column.title.len().min(*width);
                let place = if column.is_number {
                    (start + width - title).saturating_sub(1)
                } else {
                    start + title
                };
                let mut letters: Vec<char> = line.chars().collect();
                letters.resize(letters.len().max(place + 1), ' ');
                letters[place] = mark;
                return letters.into_iter().collect();
            }
        }
        line
    }

    /// Returns a line of cells.
    pub(crate) fn line(&self, cells: &[String], fit: &Fit) -> String {
        let mut line = String::new();
        for (nth, (at, width)) in fit.0.iter().enumerate() {
            if nth > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = cells.get(*at).map_or("", String::as_str);
            line.push_str(&padded(cell, *width, self.columns[*at].is_number));
        }
        line.trim_end().to_owned()
    }

    /// Returns the whole table as text.
    #[cfg(test)]
    pub(crate) fn text(&self, room: usize) -> String {
        let fit = self.fit(room);
        let mut text = self.header(&fit, None);
        text.push('\n');
        for row in &self.rows {
            text.push_str(&self.line(&row.cells, &fit));
            text.push('\n');
        }
        text
    }
}

/// Returns how many cells of a terminal a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts a text, with an ellipsis at its end.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut cut = String::new();
    // The ellipsis takes a cell.
    let mut taken = 1;
    for c in text.chars() {
        // In cells, not letters: CJK letters take two, and combining marks none.
        taken += c.width().unwrap_or_default();
        if taken > room {
            break;
        }
        cut.push(c);
    }
    if room > 0 {
        cut.push('…');
    }
    cut
}

/// Returns a text in exactly so many cells.
pub(crate) fn padded(text: &str, room: usize, on_the_right: bool) -> String {
    let text = shortened(text, room);
    let space = " ".repeat(room.saturating_sub(text.width()));
    if on_the_right {
        format!("{space}{text}")
    } else {
        format!("{text}{space}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let row = |cells: [&str; 4]| Row {
            cells: cells.map(str::to_owned).to_vec(),
            tone: Tone::Plain,
        };
        Grid {
            columns: vec![
                Column::text("NAME", 0),
                Column::number("DUE", 0),
                Column::number("OBJECTS", 2),
                Column::text("PHASE", 1),
            ],
            rows: vec![
                row(["Deployment.apps", "5", "12000", "synced"]),
                row(["Ünïcode", "12k", "", "listing, 400 of 20000"]),
            ],
        }
    }

    #[test]
    fn a_table_shows_less_where_there_is_less_room() {
        let expected = "\
NAME             DUE  OBJECTS  PHASE
Deployment.apps    5    12000  synced
Ünïcode          12k           listing, 400 of 20000
";
        assert_eq!(grid().text(80), expected);
        let narrow = "\
NAME             DUE  PHASE
Deployment.apps    5  synced
Ünïcode          12k  listing, 400…
";
        assert_eq!(grid().text(35), narrow);
    }

    #[test]
    fn the_mark_of_a_sorted_column_takes_no_room() {
        let grid = grid();
        let header = |by: usize| grid.header(&grid.fit(80), Some((by, '▼')));
        assert_eq!(header(0), "NAME▼            DUE  OBJECTS  PHASE");
        assert_eq!(header(1), "NAME            ▼DUE  OBJECTS  PHASE");
        assert_eq!(header(3), "NAME             DUE  OBJECTS  PHASE▼");
    }

    #[test]
    fn every_line_fits_and_the_most_important_columns_stay() {
        for room in 8..100 {
            let text = grid().text(room);
            assert!(
                text.lines().all(|line| width(line) <= room),
                "{room}:\n{text}"
            );
            assert!(text.contains("DUE"), "{room}:\n{text}");
            assert_eq!(text.contains("OBJECTS"), room >= 43, "{room}:\n{text}");
        }
    }

    #[test]
    fn texts_are_cut_by_cells_and_not_by_bytes() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
        // Two cells each.
        assert_eq!(shortened("漢字漢字", 6), "漢字…");
        assert_eq!(padded("漢字", 5, true), " 漢字");
        assert_eq!(shortened("abc", 0), "");
    }
}
