//! Drawing: a function of the state and the size.

use ratatui::Frame;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::app::{App, Page};
use super::content::Content;
use super::header::{filtered, header};
use super::lists::{Size, Theme, list, list_or, text, wrapped};
use crate::console::{Tone, shortened};

/// Under which height the lines above a list are cut.
const LOW: usize = 16;

const HELP: [&str; 9] = [
    "Keys",
    " ↑ ↓  j k        move",
    " PgUp PgDn g G   move far",
    " Enter →         open",
    " Esc ←           back",
    " Tab             the next list",
    " /               filter; Esc clears it",
    " s  r            sort, reverse",
    " q  Ctrl-C       end",
];

/// Draws the state.
pub(super) fn draw(app: &App, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let size = Size {
        width: usize::from(area.width),
        height: usize::from(area.height),
    };
    let lines = screen(app, theme, size);
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns all that is to be seen of a page, as plain text without a selection.
pub(super) fn plain(app: &App, room: usize) -> String {
    let theme = Theme { has_colours: false };
    let content = app.content();
    let mut lines = header(app, theme, room);
    // The names of the lists are for keys.
    lines.pop();
    let size = Size {
        width: room,
        height: content.len() + 1,
    };
    lines.extend(list(&content, None, theme, size));
    let text = lines.iter().map(|line| {
        let spans = line.spans.iter().map(|span| &span.content[..]);
        format!("{}\n", spans.collect::<String>().trim_end())
    });
    text.collect()
}

/// Returns the lines of the screen.
fn screen(app: &App, theme: Theme, size: Size) -> Vec<Line<'static>> {
    let Size { width, height } = size;
    if app.has_help {
        return HELP
            .iter()
            .map(|line| Line::raw(shortened(line, width)))
            .take(height)
            .collect();
    }
    let foot = footer(app, theme, width);
    let mut lines = header(app, theme, width);
    if height < LOW {
        // The first line says which program it is, the last one which list.
        let most = (height / 4).max(1);
        while lines.len() > most && lines.len() > 2 {
            lines.remove(lines.len() - 2);
        }
    }
    let left = height.saturating_sub(lines.len() + foot.len());
    let size = Size {
        height: left,
        ..size
    };
    lines.extend(body(app, theme, size));
    // Filled up, so that the foot is at the bottom of the screen.
    lines.resize(height.saturating_sub(foot.len()), Line::default());
    lines.extend(foot);
    // A terminal of two or three lines has no room for both header and foot.
    lines.truncate(height);
    lines
}

/// Returns the lists.
fn body(app: &App, theme: Theme, size: Size) -> Vec<Line<'static>> {
    let view = app.view();
    let selected = |list: usize, content: &Content| {
        let has_it = list == view.list;
        has_it.then(|| view.selected[list].position(content.ids()))
    };
    match (&view.page, &view.detail) {
        (Page::Home, _) => {
            let content = app.content();
            let at = selected(view.list, &content);
            list_or(&content, at, theme, size, sort_mark(app))
        }
        (_, None) => vec![theme.line("loading …".to_owned(), Tone::Dim)],
        (_, Some(Err(error))) => wrapped(error, size.width)
            .into_iter()
            .map(|line| theme.line(line, Tone::Bad))
            .collect(),
        (Page::Controller(_), _) => {
            let handlers = Content::of(app, 0);
            let keys = Content::of(app, 1);
            // The handlers have up to a third, unless the user is there.
            let share = if view.list == 0 {
                size.height / 2
            } else {
                size.height / 3
            };
            let above = (handlers.len() + 1).min(share.max(2));
            let at_most = |height: usize| Size { height, ..size };
            let mark = |list: usize| sort_mark(app).filter(|_| list == view.list);
            let at = selected(0, &handlers);
            let mut lines = list_or(&handlers, at, theme, at_most(above), mark(0));
            let title = match filtered(app, &keys) {
                text if view.list == 1 && !text.is_empty() => format!(" Keys: {text}"),
                _ => " Keys".to_owned(),
            };
            lines.push(theme.bar(&title, Tone::Dim, size.width));
            let left = size.height.saturating_sub(lines.len());
            let at = selected(1, &keys);
            lines.extend(list_or(&keys, at, theme, at_most(left), mark(1)));
            lines
        }
        (Page::Key(..), _) => {
            let content = app.content();
            text(&content, selected(0, &content), theme, size)
        }
    }
}

/// Returns the last lines: that the connection is lost, and what keys do.
fn footer(app: &App, theme: Theme, room: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(lost) = &app.lost {
        let ago = lost.ago.as_secs();
        let text = format!(" connection lost {ago}s ago, trying again: {}", lost.error);
        lines.push(theme.bar(&text, Tone::Bad, room));
    }
    let view = app.view();
    let keys = if app.is_typing {
        format!("/{}▏ Enter keeps it, Esc clears it", view.filter)
    } else {
        let open = match (&view.page, view.list) {
            (Page::Controller(_), 0) => "Enter its keys",
            (Page::Key(..), _) => "Enter ⏎ the cause",
            _ => "Enter open",
        };
        let back = if view.page == Page::Home {
            ""
        } else {
            "Esc back  "
        };
        // What is needed most comes first, where there is little room.
        format!("q quit  ? help  {open}  {back}/ filter  s sort  Tab list")
    };
    let tone = if app.is_typing {
        Tone::Strong
    } else {
        Tone::Dim
    };
    lines.push(theme.line(shortened(&keys, room), tone));
    lines
}

/// Returns the column that the list is sorted by, and its mark.
fn sort_mark(app: &App) -> Option<(usize, char)> {
    let view = app.view();
    let mark = if view.is_reversed { '▲' } else { '▼' };
    view.sort.map(|column| (column, mark))
}
